// SPDX-License-Identifier: AGPL-3.0-only
// The twins of device/one_shot.cu and device/two_shot.cu.
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/kernels/detail/host_image.hpp>
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/host/flags.hpp>
#include <spark_comm/kernels/host/kernels.hpp>
#include <spark_comm/kernels/host/rank_sum.hpp>
#include <spark_comm/kernels/peer_segment.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace spark_comm::kernels::host {
namespace {

// The message as elements of T, in user memory and in everybody's slot of the round.
template <typename T>
class message {
 public:
  message(const detail::all_reduce_parameters& p, std::uint64_t round)
      : p_(p), slot_(staging_offset(p.peers.limits, round)) {}

  [[nodiscard]] T* staged(int rank, std::size_t at) const {
    return reinterpret_cast<T*>(bytes_of(p_.peers.segments[rank]) + slot_) + at;
  }

  void stage(std::size_t at, std::size_t count) const {
    std::memcpy(staged(p_.peers.rank, at), static_cast<const T*>(p_.input) + at, count * sizeof(T));
  }

  [[nodiscard]] T* output(std::size_t at) const { return static_cast<T*>(p_.output) + at; }

  void reduce(std::size_t first, std::size_t count) const {
    round_sums(output(first), count, p_.peers.limits.world, [&](int r, std::size_t at) -> const T* {
      return r == p_.peers.rank ? static_cast<const T*>(p_.input) + first + at
                                : staged(r, first + at);
    });
  }

 private:
  const detail::all_reduce_parameters& p_;
  std::size_t slot_;
};

// Which elements a rank reduces in two_shot.
struct part {
  std::size_t first = 0;
  std::size_t count = 0;
};

part part_of(const detail::all_reduce_parameters& p, int rank) {
  const auto world = static_cast<std::size_t>(p.peers.limits.world);
  const std::size_t share = (p.count_elements + world - 1) / world;
  const std::size_t first =
      std::min<std::size_t>(share * static_cast<std::size_t>(rank), p.count_elements);
  return {.first = first, .count = std::min<std::size_t>(share, p.count_elements - first)};
}

}  // namespace

template <typename T>
void one_shot(void** arguments, host_dimensions grid, host_dimensions /*block*/) {
  const auto& p = *static_cast<const detail::all_reduce_parameters*>(arguments[0]);
  segment_header& own = header_of(p.peers.segments[p.peers.rank]);
  const std::uint64_t round = begin_round(p.peers, own.rounds);
  if (round == 0) {
    return;
  }
  const message<T> data{p, round};
  data.stage(0, p.count_elements);
  if (meet_peers(p.peers, 0, round, grid.x)) {
    data.reduce(0, p.count_elements);
    end_round(own.rounds, round);
  }
}

template <typename T>
void two_shot(void** arguments, host_dimensions grid, host_dimensions /*block*/) {
  const auto& p = *static_cast<const detail::all_reduce_parameters*>(arguments[0]);
  segment_header& own = header_of(p.peers.segments[p.peers.rank]);
  const std::uint64_t round = begin_round(p.peers, own.rounds);
  if (round == 0) {
    return;
  }
  const message<T> data{p, round};
  data.stage(0, p.count_elements);
  if (!meet_peers(p.peers, 0, round, grid.x)) {
    return;
  }
  const part mine = part_of(p, p.peers.rank);
  data.reduce(mine.first, mine.count);
  std::copy_n(data.output(mine.first), mine.count, data.staged(p.peers.rank, mine.first));
  if (!meet_peers(p.peers, 1, round, grid.x)) {
    return;
  }
  for (int r = 0; r < p.peers.limits.world; ++r) {
    const part theirs = part_of(p, r);
    if (r != p.peers.rank) {
      std::copy_n(data.staged(r, theirs.first), theirs.count, data.output(theirs.first));
    }
  }
  end_round(own.rounds, round);
}

template void one_shot<float>(void**, host_dimensions, host_dimensions);
template void one_shot<float16>(void**, host_dimensions, host_dimensions);
template void one_shot<bfloat16>(void**, host_dimensions, host_dimensions);
template void two_shot<float>(void**, host_dimensions, host_dimensions);
template void two_shot<float16>(void**, host_dimensions, host_dimensions);
template void two_shot<bfloat16>(void**, host_dimensions, host_dimensions);

}  // namespace spark_comm::kernels::host
