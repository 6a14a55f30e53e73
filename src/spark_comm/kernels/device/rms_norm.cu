// SPDX-License-Identifier: AGPL-3.0-only
// Sum over ranks' partials, residual add and RMSNorm (and fp8 quantisation) in one pass.
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/device/row_norm.cuh>

namespace spark_comm::kernels::device {
namespace {

/// One block a row.
///
/// Launch: grid = rows; block = `norm_shape(hidden)`, whole warps, at most 512 threads when one
/// chunk
///   is held and 1024 otherwise; 256 bytes of static shared memory.
/// Memory: row-major rows x hidden; 16-byte accesses when `is_wide`, else element by element. Each
///   element is read and written by one thread, so residual_out may be residual, and out may be a
///   partial; out and residual_out differ. Each input is read once up to a hidden size of 16384;
///   beyond, residual_out is read again.
/// Sync: block barriers only.
/// Numerics: see row_norm; equal bits for every alignment.
/// Limits: hidden up to 2^24, the integers that fp32 holds; up to 8 partials.
/// Source: own.
template <typename T, int Inputs, int Held>
__device__ void rms_norm(const detail::rms_norm_parameters& p) {
  __shared__ row_scratch scratch;
  const std::uint64_t row = blockIdx.x;
  const bool is_wide = p.is_wide != 0;
  row_norm<T, Held>{p, row, scratch}.run([&](std::uint32_t c, float(&sum)[chunk_elements]) {
    const std::uint64_t in_row = std::uint64_t{c} * chunk_elements;
    const std::uint64_t left = p.hidden - in_row;
    const int valid = left < chunk_elements ? static_cast<int>(left) : chunk_elements;
    const auto partial = [&](int r) {
      return chunk<T>::load(
          static_cast<const T*>(p.partials[r]) + row * p.hidden + in_row, is_wide, valid);
    };
    const chunk<T> first = partial(0);
    if constexpr (Inputs == 1) {
      first.to_floats(sum);
      return;
    }
    chunk<T> next = partial(1);  // both on their way before either is used
    first.to_floats(sum);
    const int inputs = Inputs > 0 ? Inputs : p.partials_count;
    for (int r = 1; r < inputs; ++r) {
      if (r > 1) {
        next = partial(r);
      }
      float values[chunk_elements];
      next.to_floats(values);
#pragma unroll
      for (int i = 0; i < chunk_elements; ++i) {
        sum[i] += values[i];
      }
    }
  });
}

}  // namespace
}  // namespace spark_comm::kernels::device

// Names as in kernel_table.cpp: element, partials (1, 2, or 0 for 2 and more), chunks held (1, 2,
// 0).
#define SPARK_COMM_NORM(name, type, inputs, held, threads)                               \
  extern "C" __global__ void __launch_bounds__(threads)                                  \
      name(const __grid_constant__ spark_comm::kernels::detail::rms_norm_parameters p) { \
    spark_comm::kernels::device::rms_norm<type, inputs, held>(p);                        \
  }
#define SPARK_COMM_NORMS(element, type)                         \
  SPARK_COMM_NORM(rms_norm_##element##_n0_v0, type, 0, 1, 512)  \
  SPARK_COMM_NORM(rms_norm_##element##_n0_v1, type, 0, 2, 1024) \
  SPARK_COMM_NORM(rms_norm_##element##_n0_v2, type, 0, 0, 1024) \
  SPARK_COMM_NORM(rms_norm_##element##_n1_v0, type, 1, 1, 512)  \
  SPARK_COMM_NORM(rms_norm_##element##_n1_v1, type, 1, 2, 1024) \
  SPARK_COMM_NORM(rms_norm_##element##_n1_v2, type, 1, 0, 1024) \
  SPARK_COMM_NORM(rms_norm_##element##_n2_v0, type, 2, 1, 512)  \
  SPARK_COMM_NORM(rms_norm_##element##_n2_v1, type, 2, 2, 1024) \
  SPARK_COMM_NORM(rms_norm_##element##_n2_v2, type, 2, 0, 1024)
SPARK_COMM_NORMS(bf16, __nv_bfloat16)
SPARK_COMM_NORMS(fp16, __half)
SPARK_COMM_NORMS(fp32, float)
#undef SPARK_COMM_NORMS
#undef SPARK_COMM_NORM
