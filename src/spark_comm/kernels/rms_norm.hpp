// SPDX-License-Identifier: AGPL-3.0-only
// Sum over ranks, residual add and RMSNorm in one kernel, with or without fp8 quantisation.
#pragma once

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/module.hpp>

#include <cstddef>
#include <span>

namespace spark_comm::kernels {

struct rms_norm_call {
  data_type dtype = data_type::bfloat16;
  std::span<const void* const> partials;  ///< In rank order, 1 to 8.
  const void* residual = nullptr;
  const void* weight = nullptr;
  void* residual_out = nullptr;
  void* out = nullptr;      ///< Elements of dtype, or fp8 e4m3 when `scales` is given.
  float* scales = nullptr;  ///< One a row.
  std::size_t rows = 0;
  std::size_t hidden = 0;
  float epsilon = 1e-5F;
};

/// residual_out = sum(partials) + residual; out = residual_out normalised by its RMS, times weight.
///
/// One partial makes it the plain residual + RMSNorm that follows an all-reduce.
///
/// Shape: partials, residual, residual_out and out are [T, H], T rows and H hidden; weight is [H];
/// scales is [T]. Any T and H, at any multiple of the element size. residual_out may be residual;
/// out may be a partial, and not residual_out. Order: enqueued on `s`. Capturable. Nothing is
/// enqueued for 0 rows. Throws: invalid_argument before enqueueing; device_failed. Numerics: the
/// sum is taken in fp32 in rank order and rounded to dtype; residual_out is that plus the residual,
/// rounded to dtype; the norm is of the rounded residual_out, so the bits are those of all-reduce,
/// add and norm done one after the other. Then out = round((x * (1 / sqrt(mean(x^2) + epsilon))) *
/// weight) with fp32 steps; the order of the sum of squares hangs on H alone. With scales: scale =
/// (largest magnitude of the rounded row) / 448, or 1 for a row of zeros, and out is e4m3(row /
/// scale). A NaN stays a NaN and does not touch the scale. The same bits for every alignment, and
/// on the host runtime. Cost: one pass over memory up to H = 16384; beyond, residual_out is read
/// again.
SPARK_COMM_API void rms_norm(const kernel_module& kernels,
                             const rms_norm_call& call,
                             cuda::stream_ref s);

}  // namespace spark_comm::kernels
