// SPDX-License-Identifier: AGPL-3.0-only
// Reductions over a block in a fixed order, which host_reduce.hpp repeats bit for bit.
#pragma once

#include <spark_comm/kernels/detail/parameters.hpp>

#include <cstdint>

namespace spark_comm::kernels::device {

inline constexpr int warp_lanes = 32;
inline constexpr unsigned int all_lanes = 0xffffffffU;

/// The slots of one thread, halving: ((0+4)+(2+6)) + ((1+5)+(3+7)).
__device__ inline float add_slots(float (&slots)[detail::chunk_elements]) {
#pragma unroll
  for (int half = detail::chunk_elements / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; ++i) {
      slots[i] += slots[i + half];
    }
  }
  return slots[0];
}

struct add_values {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// Ignores NaN unless both are, so one NaN does not hide the scale of a row.
struct larger_value {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// Combines the lanes of a warp, halving (16, 8, 4, 2, 1); every lane gets the same bits, because
/// both operations are commutative.
template <typename Combine>
__device__ float combine_warp(float value, Combine combine) {
#pragma unroll
  for (int offset = warp_lanes / 2; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(all_lanes, value, offset));
  }
  return value;
}

/// Combines non-negative values over a block of whole warps; every thread gets the result. Missing
/// warps count as 0. `shared` is not used again before the block's next barrier.
template <typename Combine>
__device__ float combine_block(float value, float (&shared)[warp_lanes], Combine combine) {
  value = combine_warp(value, combine);
  const unsigned int lane = threadIdx.x % warp_lanes;
  if (lane == 0) {
    shared[threadIdx.x / warp_lanes] = value;
  }
  __syncthreads();
  return combine_warp(lane < blockDim.x / warp_lanes ? shared[lane] : 0.0F, combine);
}

}  // namespace spark_comm::kernels::device
