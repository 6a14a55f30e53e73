// SPDX-License-Identifier: AGPL-3.0-only
// The twin of device/rms_norm.cu.
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/kernels/detail/host_image.hpp>
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/host/kernels.hpp>
#include <spark_comm/kernels/host/rank_sum.hpp>
#include <spark_comm/kernels/host/row_norm.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace spark_comm::kernels::host {

template <typename T>
void rms_norm(void** arguments, host_dimensions /*grid*/, host_dimensions block) {
  const auto& p = *static_cast<const detail::rms_norm_parameters*>(arguments[0]);
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    const auto sum = [&](std::size_t at, std::span<float> sums) {
      sum_over_ranks<T>(sums, p.partials_count, [&](int r) {
        return static_cast<const T*>(p.partials[r]) + row * p.hidden + at;
      });
    };
    row_norm<T, decltype(sum)>{p, row, block.x, sum}.run();
  }
}

template void rms_norm<float>(void**, host_dimensions, host_dimensions);
template void rms_norm<float16>(void**, host_dimensions, host_dimensions);
template void rms_norm<bfloat16>(void**, host_dimensions, host_dimensions);

}  // namespace spark_comm::kernels::host
