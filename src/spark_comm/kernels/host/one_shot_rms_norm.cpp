// SPDX-License-Identifier: AGPL-3.0-only
// The twin of device/one_shot_rms_norm.cu.
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/kernels/detail/geometry.hpp>
#include <spark_comm/kernels/detail/host_image.hpp>
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/host/flags.hpp>
#include <spark_comm/kernels/host/kernels.hpp>
#include <spark_comm/kernels/host/rank_sum.hpp>
#include <spark_comm/kernels/host/row_norm.hpp>
#include <spark_comm/kernels/peer_segment.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace spark_comm::kernels::host {

template <typename T>
void one_shot_rms_norm(void** arguments, host_dimensions grid, host_dimensions block) {
  const auto& p = *static_cast<const detail::all_reduce_rms_norm_parameters*>(arguments[0]);
  const detail::rms_norm_parameters& norm = p.norm;
  segment_header& own = header_of(p.peers.segments[p.peers.rank]);
  const std::uint64_t round = begin_round(p.peers, own.rounds);
  if (round == 0) {
    return;
  }
  const std::size_t slot = staging_offset(p.peers.limits, round);
  const std::size_t pitch = detail::staged_row_bytes(norm.hidden, sizeof(T));
  const auto staged = [&](int rank, std::uint64_t row) {
    return reinterpret_cast<T*>(bytes_of(p.peers.segments[rank]) + slot + row * pitch);
  };
  const auto input = [&](std::uint64_t row) {
    return static_cast<const T*>(norm.partials[0]) + row * norm.hidden;
  };
  for (std::uint64_t row = 0; row < norm.rows; ++row) {
    std::memcpy(staged(p.peers.rank, row), input(row), norm.hidden * sizeof(T));
  }
  if (!meet_peers(p.peers, 0, round, grid.x)) {
    return;
  }
  for (std::uint64_t row = 0; row < norm.rows; ++row) {
    const auto sum = [&](std::size_t at, std::span<float> sums) {
      sum_over_ranks<T>(sums, p.peers.limits.world, [&](int r) -> const T* {
        return (r == p.peers.rank ? input(row) : staged(r, row)) + at;
      });
    };
    row_norm<T, decltype(sum)>{norm, row, block.x, sum}.run();
  }
  end_round(own.rounds, round);
}

template void one_shot_rms_norm<float>(void**, host_dimensions, host_dimensions);
template void one_shot_rms_norm<float16>(void**, host_dimensions, host_dimensions);
template void one_shot_rms_norm<bfloat16>(void**, host_dimensions, host_dimensions);

}  // namespace spark_comm::kernels::host
