// SPDX-License-Identifier: AGPL-3.0-only
// Our own declarations of NCCL's ABI, so that no vendor header is needed to build. Where nccl.h is
// found, a test compares every line here with it.
// Source: nccl.h, NCCL 2.28.9; config fields up to 2.30.7.
#pragma once

#include <spark_comm/cuda/abi.hpp>

#include <climits>
#include <cstddef>

// The vendor's opaque types, by their own names.
struct ncclComm;
struct ncclWindow_vidmem;

namespace spark_comm::nccl::abi {

using comm = ncclComm*;
using window = ncclWindow_vidmem*;
using stream = cuda::abi::stream;

/// ncclResult_t. An open integer: newer libraries answer with numbers that we do not know.
using result = int;

namespace results {
inline constexpr result success = 0;
inline constexpr result unhandled_cuda_error = 1;
inline constexpr result system_error = 2;
inline constexpr result internal_error = 3;
inline constexpr result invalid_argument = 4;
inline constexpr result invalid_usage = 5;
inline constexpr result remote_error = 6;
inline constexpr result in_progress = 7;
inline constexpr result timeout = 8;  // since 2.30
}  // namespace results

/// ncclDataType_t and ncclRedOp_t, as integers: their values are those of `data_type`, `reduce_op`.
using data_type = int;
using reduce_op = int;

/// ncclUniqueId. A secret: whoever holds it can join. It serves one communicator.
struct unique_id {
  char internal[128];
};

/// "Not set" in a config.
inline constexpr int undefined_int = INT_MIN;

/// ncclConfig_t in its 2.30.7 layout. Older libraries read the fields that they know.
struct config {
  std::size_t size = 96;
  unsigned int magic = 0xcafebeef;
  unsigned int version = 23007;
  int blocking = undefined_int;
  int cga_cluster_size = undefined_int;
  int min_ctas = undefined_int;
  int max_ctas = undefined_int;
  const char* net_name = nullptr;
  int split_share = undefined_int;
  int traffic_class = undefined_int;
  const char* comm_name = nullptr;
  int collnet_enable = undefined_int;
  int cta_policy = undefined_int;
  int shrink_share = undefined_int;
  int nvls_ctas = undefined_int;
  int n_channels_per_net_peer = undefined_int;
  int nvlink_centric_sched = undefined_int;
  int graph_usage_mode = undefined_int;
  int num_rma_ctx = undefined_int;
  int max_p2p_peers = undefined_int;
  int graph_stream_ordering = undefined_int;
};

static_assert(sizeof(config) == 96);

inline constexpr int window_default = 0;
inline constexpr int window_collective_symmetric = 1;
inline constexpr int split_no_color = -1;
/// Alignment of a window's start, relative to its allocation.
inline constexpr std::size_t window_alignment_bytes = 4096;

}  // namespace spark_comm::nccl::abi
