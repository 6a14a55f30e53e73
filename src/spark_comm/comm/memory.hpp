// SPDX-License-Identifier: AGPL-3.0-only
// Device memory for communication: plain, or of the kind that windows are made of.
#pragma once

#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>

#include <cstddef>
#include <cstdint>

namespace spark_comm {

/// Where device memory comes from.
enum class memory_kind : std::uint8_t {
  plain,      ///< The driver's ordinary allocation.
  symmetric,  ///< NCCL's, whose memory other ranks can map. By itself that makes no window: see
              ///< `communicator::register_window`.
};

/// Throws: invalid_argument for 0 bytes; out_of_memory; device_failed.
/// Cost: symmetric memory comes in whole pages of the device, of about 2 MiB.
/// Source: ncclMemAlloc, NCCL 2.28.9.
[[nodiscard]] SPARK_COMM_API cuda::device_buffer allocate_buffer(const runtime& loaded,
                                                                 const cuda::device& where,
                                                                 std::size_t bytes,
                                                                 memory_kind kind);

}  // namespace spark_comm
