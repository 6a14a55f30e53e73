// SPDX-License-Identifier: AGPL-3.0-only
// The twin of device/add.cu.
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/kernels/detail/host_image.hpp>
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/host/kernels.hpp>
#include <spark_comm/kernels/host/rank_sum.hpp>

#include <cstddef>

namespace spark_comm::kernels::host {

template <typename T>
void add(void** arguments, host_dimensions /*grid*/, host_dimensions /*block*/) {
  const auto& p = *static_cast<const detail::add_parameters*>(arguments[0]);
  round_sums(
      static_cast<T*>(p.output), p.count_elements, p.inputs_count, [&](int r, std::size_t at) {
        return static_cast<const T*>(p.inputs[r]) + at;
      });
}

template void add<float>(void**, host_dimensions, host_dimensions);
template void add<float16>(void**, host_dimensions, host_dimensions);
template void add<bfloat16>(void**, host_dimensions, host_dimensions);

}  // namespace spark_comm::kernels::host
