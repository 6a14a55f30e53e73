// SPDX-License-Identifier: AGPL-3.0-only
// Adds the contributions of several ranks in rank order.
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/device/vectors.cuh>

namespace spark_comm::kernels::device {
namespace {

/// One vector a thread and step.
///
/// Launch: 256 threads; any grid (grid-stride); no shared memory.
/// Memory: inputs and output hold count elements and start on a vector boundary. Output may equal
/// an
///   input: a thread reads all its inputs of an element before it writes it.
/// Sync: none.
/// Numerics: fp32 sum in the order of the inputs, one rounding; equal bits for every vector size.
/// Limits: up to 8 inputs.
/// Source: own.
template <typename T, int Inputs, int Count>
__device__ void add(const detail::add_parameters& p) {
  const int inputs = Inputs > 0 ? Inputs : p.inputs_count;
  const std::uint64_t vectors = p.count_elements / Count;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  const auto input = [&](int i, std::uint64_t at) {
    return static_cast<const T*>(p.inputs[i]) + at;
  };
  T* const output = static_cast<T*>(p.output);

  for (std::uint64_t v = first; v < vectors; v += step) {
    const std::uint64_t at = v * Count;
    vector<T, Count> own = vector<T, Count>::load(input(0, at));
    vector<T, Count> next = vector<T, Count>::load(input(1, at));
    float sum[Count];
    own.to_floats(sum);
    for (int i = 1; i < inputs; ++i) {
      if (i > 1) {
        next = vector<T, Count>::load(input(i, at));
      }
      float values[Count];
      next.to_floats(values);
#pragma unroll
      for (int j = 0; j < Count; ++j) {
        sum[j] += values[j];
      }
    }
    vector<T, Count>::from_floats(sum).store(output + at);
  }

  // Fewer elements than a vector are left; one thread each.
  const std::uint64_t rest = vectors * Count + first;
  if (rest < p.count_elements) {
    float sum = to_float(*input(0, rest));
    for (int i = 1; i < inputs; ++i) {
      sum += to_float(*input(i, rest));
    }
    output[rest] = from_float<T>(sum);
  }
}

}  // namespace
}  // namespace spark_comm::kernels::device

// Names as in kernel_table.cpp: element, inputs (2, or 0 for any), vector (16, 4 or 2 bytes).
#define SPARK_COMM_ADD(name, type, inputs, count)                                   \
  extern "C" __global__ void __launch_bounds__(256)                                 \
      name(const __grid_constant__ spark_comm::kernels::detail::add_parameters p) { \
    spark_comm::kernels::device::add<type, inputs, count>(p);                       \
  }
SPARK_COMM_ADD(add_bf16_n0_v0, __nv_bfloat16, 0, 8)
SPARK_COMM_ADD(add_bf16_n0_v1, __nv_bfloat16, 0, 2)
SPARK_COMM_ADD(add_bf16_n0_v2, __nv_bfloat16, 0, 1)
SPARK_COMM_ADD(add_bf16_n2_v0, __nv_bfloat16, 2, 8)
SPARK_COMM_ADD(add_bf16_n2_v1, __nv_bfloat16, 2, 2)
SPARK_COMM_ADD(add_bf16_n2_v2, __nv_bfloat16, 2, 1)
SPARK_COMM_ADD(add_fp16_n0_v0, __half, 0, 8)
SPARK_COMM_ADD(add_fp16_n0_v1, __half, 0, 2)
SPARK_COMM_ADD(add_fp16_n0_v2, __half, 0, 1)
SPARK_COMM_ADD(add_fp16_n2_v0, __half, 2, 8)
SPARK_COMM_ADD(add_fp16_n2_v1, __half, 2, 2)
SPARK_COMM_ADD(add_fp16_n2_v2, __half, 2, 1)
SPARK_COMM_ADD(add_fp32_n0_v0, float, 0, 4)
SPARK_COMM_ADD(add_fp32_n0_v1, float, 0, 1)
SPARK_COMM_ADD(add_fp32_n2_v0, float, 2, 4)
SPARK_COMM_ADD(add_fp32_n2_v1, float, 2, 1)
#undef SPARK_COMM_ADD
