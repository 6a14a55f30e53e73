// SPDX-License-Identifier: AGPL-3.0-only
// The sum of several ranks' contributions that are already in local memory.
#pragma once

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/module.hpp>

#include <cstddef>
#include <span>

namespace spark_comm::kernels {

struct add_call {
  data_type dtype = data_type::bfloat16;
  std::span<const void* const> inputs;  ///< In rank order, 2 to 8.
  void* out = nullptr;
  std::size_t count_elements = 0;
};

/// out[i] = inputs[0][i] + inputs[1][i] + ...
///
/// Shape: every input and out hold count elements at any multiple of the element size; out is equal
/// to an input or disjoint from it.
/// Order: enqueued on `s`. Capturable. Nothing is enqueued for 0 elements.
/// Throws: invalid_argument before enqueueing; device_failed.
/// Numerics: fp32 sum in the order of the inputs, rounded once to nearest even; the same bits for
/// every alignment, and on the host runtime. NaN in fp32 is 0x7fffffff.
SPARK_COMM_API void add(const kernel_module& kernels, const add_call& call, cuda::stream_ref s);

}  // namespace spark_comm::kernels
