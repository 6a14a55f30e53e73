// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/detail/checks.hpp>
#include <spark_comm/kernels/detail/geometry.hpp>
#include <spark_comm/kernels/detail/kernel_table.hpp>
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/detail/rms_norm_launch.hpp>
#include <spark_comm/kernels/module.hpp>
#include <spark_comm/kernels/peer_segment.hpp>
#include <spark_comm/kernels/rms_norm.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace spark_comm::kernels {
namespace detail {
namespace {

// fp32 holds every integer up to here, so the mean's divisor is exact.
constexpr std::size_t largest_hidden = std::size_t{1} << 24U;
constexpr std::size_t most_rows = std::numeric_limits<std::int32_t>::max();

bool is_wide(const rms_norm_call& call) {
  const std::array<const void*, 4> addresses = {
      call.residual, call.weight, call.residual_out, call.scales == nullptr ? call.out : nullptr};
  // An fp8 chunk is 8 bytes.
  return call.hidden % chunk_elements == 0 && are_aligned(addresses, 16) &&
         are_aligned(call.partials, 16) && are_aligned(std::array<const void*, 1>{call.out}, 8);
}

input_count inputs_of(std::size_t partials) {
  if (partials == 1) {
    return input_count::one;
  }
  return partials == 2 ? input_count::two : input_count::any;
}

}  // namespace

void check(const rms_norm_call& call) {
  require_kernel_type(call.dtype);
  require(call.hidden >= 1 && call.hidden <= largest_hidden, "hidden must be 1 to 2^24");
  require(call.rows <= most_rows, "rows must fit 31 bits");
  require(call.epsilon >= 0.0F && call.epsilon <= std::numeric_limits<float>::max(),
          "epsilon must be finite and not negative");
  if (call.rows == 0) {
    return;
  }
  const std::size_t element_bytes = size_of(call.dtype);
  const std::size_t bytes = call.rows * call.hidden * element_bytes;
  for (const void* partial : call.partials) {
    require_elements(partial, element_bytes, "a partial");
    require_equal_or_disjoint(partial, call.residual_out, bytes);
    if (call.scales == nullptr) {
      require_equal_or_disjoint(partial, call.out, bytes);
    }
  }
  require_elements(call.residual, element_bytes, "residual");
  require_elements(call.weight, element_bytes, "weight");
  require_elements(call.residual_out, element_bytes, "residual_out");
  require_elements(call.out, call.scales == nullptr ? element_bytes : 1, "out");
  require(call.out != call.residual_out, "out and residual_out must differ");
  require_equal_or_disjoint(call.residual, call.residual_out, bytes);
  if (call.scales != nullptr) {
    require_elements(call.scales, sizeof(float), "scales");
  }
}

rms_norm_parameters parameters_of(const rms_norm_call& call) {
  rms_norm_parameters parameters{};
  std::ranges::copy(call.partials, parameters.partials);
  parameters.residual = call.residual;
  parameters.weight = call.weight;
  parameters.residual_out = call.residual_out;
  parameters.out = call.out;
  parameters.scales = call.scales;
  parameters.rows = call.rows;
  parameters.hidden = call.hidden;
  parameters.epsilon = call.epsilon;
  parameters.partials_count = static_cast<std::int32_t>(call.partials.size());
  parameters.is_wide = is_wide(call) ? 1 : 0;
  return parameters;
}

}  // namespace detail

void rms_norm(const kernel_module& kernels, const rms_norm_call& call, cuda::stream_ref s) {
  detail::require(!call.partials.empty() && call.partials.size() <= max_world,
                  "the norm takes 1 to 8 partials");
  detail::check(call);
  if (call.rows == 0) {
    return;
  }
  detail::launch_shape shape = detail::norm_shape(call.hidden);
  shape.blocks = static_cast<std::uint32_t>(call.rows);
  kernels.launch({.family = detail::kernel_family::rms_norm,
                  .dtype = call.dtype,
                  .inputs = detail::inputs_of(call.partials.size()),
                  .variant = shape.variant},
                 shape,
                 detail::parameters_of(call),
                 s);
}

}  // namespace spark_comm::kernels
