// SPDX-License-Identifier: AGPL-3.0-only
// NCCL's C types as the host runtime reads them from its callers.
// Source: nccl.h, NCCL 2.28.9.
#pragma once

#include <spark_comm/core/export.hpp>

#include <climits>
#include <cstddef>

// The vendor's opaque types, by their own names. What a handle stands for is the runtime's
// business.
struct ncclComm;
struct ncclWindow_vidmem;
struct CUstream_st;

namespace spark_comm::host::nccl {

/// The version that the runtime imitates and reports.
inline constexpr int version_code = 22809;

/// ncclResult_t.
namespace results {
inline constexpr int success = 0;
inline constexpr int unhandled_cuda_error = 1;
inline constexpr int system_error = 2;
inline constexpr int internal_error = 3;
inline constexpr int invalid_argument = 4;
inline constexpr int invalid_usage = 5;
inline constexpr int remote_error = 6;
inline constexpr int in_progress = 7;
inline constexpr int timeout = 8;
}  // namespace results

/// ncclDataType_t and ncclRedOp_t count up to these.
inline constexpr int data_type_count = 12;
inline constexpr int built_in_op_count = 5;

/// ncclUniqueId.
struct unique_id {
  char internal[128];  // NOLINT(modernize-avoid-c-arrays): the vendor's layout
};

inline constexpr int undefined_int = INT_MIN;
inline constexpr unsigned int config_magic = 0xcafebeef;

/// ncclConfig_t as 2.28 lays it out.
struct config {
  std::size_t size = sizeof(config);
  unsigned int magic = config_magic;
  unsigned int version = version_code;
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
};

static_assert(sizeof(config) == 80);

/// ncclSimInfo_t.
struct simulation_info {
  std::size_t size;
  unsigned int magic;
  unsigned int version;
  float estimated_time;
};

inline constexpr int split_no_color = -1;
inline constexpr std::size_t window_alignment_bytes = 4096;

}  // namespace spark_comm::host::nccl
