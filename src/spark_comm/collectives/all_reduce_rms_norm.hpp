// SPDX-License-Identifier: AGPL-3.0-only
// all_reduce_rms_norm: what follows a row-parallel layer, in one operation: the sum over all ranks,
// the residual, the norm, and quantisation where it is asked for.
#pragma once

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <cstddef>

namespace spark_comm {

/// T rows (tokens) of H hidden elements. Nothing overlaps, but for `out`, which may be `partial`.
struct rms_norm_arguments {
  data_type dtype = data_type::bfloat16;  ///< fp32, fp16 or bf16.
  void* partial = nullptr;       ///< [T, H] This rank's part of the sum; its content is lost.
  void* residual = nullptr;      ///< [T, H] In and out: the sum is added to it.
  const void* weight = nullptr;  ///< [H] Of the norm.
  void* out = nullptr;           ///< [T, H] Of dtype; fp8 e4m3 where `scales` is given.
  float* scales = nullptr;       ///< [T] Null: no quantisation.
  std::size_t rows = 0;
  std::size_t hidden = 0;
  float epsilon = 1e-5F;
};

/// residual += the sum of partial over all ranks; out = residual normalised by its RMS, times
/// weight.
///
/// Order: enqueued on `s`; residual, out and scales are readable by work enqueued on `s`
/// afterwards. Capturable. Not in a group.
/// Who: every rank, with the same type, rows and hidden, in the same order as its other operations.
/// Throws: invalid_argument before anything is enqueued; invalid_usage in a group; not_supported
/// when there are no kernels for this device; otherwise as `all_reduce`.
/// Numerics: the bits of all_reduce, addition and norm one after the other, each rounded to dtype;
/// equal on all ranks. A scale is the row's largest magnitude / 448, 1 for a row of zeros.
/// Cost: one kernel on `one_shot_fused`, a send, a receive and a kernel on `exchange_fused`, an
/// all-reduce and a kernel by NCCL.
SPARK_COMM_API void all_reduce_rms_norm(communicator& comm,
                                        const rms_norm_arguments& what,
                                        cuda::stream_ref s,
                                        const call_options& options = {});

}  // namespace spark_comm
