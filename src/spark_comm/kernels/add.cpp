// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/add.hpp>
#include <spark_comm/kernels/detail/checks.hpp>
#include <spark_comm/kernels/detail/geometry.hpp>
#include <spark_comm/kernels/detail/kernel_table.hpp>
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/module.hpp>
#include <spark_comm/kernels/peer_segment.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spark_comm::kernels {
namespace {

void check(const add_call& call) {
  detail::require_kernel_type(call.dtype);
  detail::require(call.inputs.size() >= 2 && call.inputs.size() <= max_world,
                  "add takes 2 to 8 inputs");
  if (call.count_elements == 0) {
    return;
  }
  const std::size_t element_bytes = size_of(call.dtype);
  detail::require_elements(call.out, element_bytes, "out");
  for (const void* input : call.inputs) {
    detail::require_elements(input, element_bytes, "an input");
    detail::require_equal_or_disjoint(input, call.out, call.count_elements * element_bytes);
  }
}

}  // namespace

void add(const kernel_module& kernels, const add_call& call, cuda::stream_ref s) {
  check(call);
  if (call.count_elements == 0) {
    return;
  }
  const std::size_t element_bytes = size_of(call.dtype);
  const std::size_t vector =
      std::min(detail::vector_bytes(call.inputs, element_bytes),
               detail::vector_bytes(std::array<const void*, 1>{call.out}, element_bytes));
  detail::add_parameters parameters{};
  std::ranges::copy(call.inputs, parameters.inputs);
  parameters.output = call.out;
  parameters.count_elements = call.count_elements;
  parameters.inputs_count = static_cast<std::int32_t>(call.inputs.size());

  const detail::launch_shape shape =
      detail::add_shape(call.count_elements * element_bytes, vector, kernels.multiprocessors());
  kernels.launch(
      {.family = detail::kernel_family::add,
       .dtype = call.dtype,
       .inputs = call.inputs.size() == 2 ? detail::input_count::two : detail::input_count::any,
       .variant = shape.variant},
      shape,
      parameters,
      s);
}

}  // namespace spark_comm::kernels
