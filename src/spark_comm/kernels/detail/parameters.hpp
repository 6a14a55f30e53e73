// SPDX-License-Identifier: AGPL-3.0-only
// What each kernel is launched with: one plain struct a kernel, shared by launchers, device code
// and host equivalents.
#pragma once

#include <spark_comm/kernels/peer_segment.hpp>

#include <cstdint>

namespace spark_comm::kernels::detail {

/// Elements that one thread of a norm kernel handles together, whatever their type: the order of a
/// row's sum hangs on it, so it is the same for all types and alignments.
inline constexpr int chunk_elements = 8;

struct add_parameters {
  const void* inputs[max_world];  ///< In rank order.
  void* output;
  std::uint64_t count_elements;
  std::int32_t inputs_count;
};

struct rms_norm_parameters {
  const void* partials[max_world];  ///< In rank order.
  const void* residual;
  const void* weight;
  void* residual_out;
  void* out;      ///< The element type, or fp8 e4m3 when `scales` is given.
  float* scales;  ///< One a row, or null.
  std::uint64_t rows;
  std::uint64_t hidden;
  float epsilon;
  std::int32_t partials_count;
  std::uint32_t is_wide;  ///< Every address and row starts on a vector boundary.
};

/// A rank's way to its peers.
struct peer_exchange {
  void* segments[max_world];  ///< By rank, as mapped here.
  exchange_status* status;
  const std::uint32_t* abort_word;
  std::uint64_t wait_limit_ns;
  segment_limits limits;
  std::int32_t rank;
};

struct all_reduce_parameters {
  peer_exchange peers;
  const void* input;
  void* output;
  std::uint64_t count_elements;
  std::uint32_t is_wide;  ///< Input and output start on a vector boundary.
};

struct all_reduce_rms_norm_parameters {
  peer_exchange peers;
  rms_norm_parameters norm;  ///< `partials[0]` is this rank's own.
};

}  // namespace spark_comm::kernels::detail
