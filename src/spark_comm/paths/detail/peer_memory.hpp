// SPDX-License-Identifier: AGPL-3.0-only
// The segments through which a rank's kernels meet those of its peers: the own ones, exported, and
// everybody else's, mapped here.
#pragma once

#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/kernels/peer_segment.hpp>

#include <array>
#include <cstddef>
#include <optional>

namespace spark_comm::detail {

/// Another process's device memory, mapped into this one.
class imported_memory {
 public:
  /// Throws: device_failed and what else the driver answers, for memory that cannot be mapped here.
  imported_memory(cuda::device where, const cuda::abi::ipc_mem_handle& handle);
  imported_memory(const imported_memory&) = delete;
  imported_memory& operator=(const imported_memory&) = delete;
  imported_memory(imported_memory&&) = delete;
  imported_memory& operator=(imported_memory&&) = delete;
  ~imported_memory();

  [[nodiscard]] void* address() const noexcept { return address_; }

 private:
  cuda::device where_;
  void* address_ = nullptr;
};

/// One allocation a rank, with a segment for each stream that exchanges.
class peer_memory {
 public:
  /// Allocates, clears and exports the own segments; when it returns they are clear.
  /// Throws: out_of_memory, device_failed; timed_out.
  peer_memory(const cuda::device& where,
              int rank,
              const kernels::segment_limits& limits,
              std::size_t segments);

  [[nodiscard]] const cuda::abi::ipc_mem_handle& handle() const noexcept { return handle_; }

  /// Maps the segments of `peer`. Throws as `imported_memory`.
  void open(int peer, const cuda::abi::ipc_mem_handle& handle);

  /// Lets go of all peers' segments.
  void close_peers() noexcept;

  /// Where segment `index` of each rank begins here, by rank.
  [[nodiscard]] std::array<void*, kernels::max_world> segment(std::size_t index) const noexcept;

 private:
  cuda::device where_;
  int rank_;
  std::size_t stride_bytes_;
  cuda::device_buffer own_;
  cuda::abi::ipc_mem_handle handle_{};
  std::array<std::optional<imported_memory>, kernels::max_world> peers_;
};

}  // namespace spark_comm::detail
