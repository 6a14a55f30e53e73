// SPDX-License-Identifier: AGPL-3.0-only
// Memory that is registered with a communicator, so that the network and other GPUs reach it
// without a copy. Both stay valid over a reconnect: each generation registers them anew.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/nccl/abi.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace spark_comm {

namespace detail {
class registry;
struct memory_range;

/// One entry of a registry, taken out when this object goes.
class SPARK_COMM_API registry_entry {
 public:
  registry_entry(std::shared_ptr<registry> where, std::uint64_t which, const memory_range& range);
  registry_entry(registry_entry&& other) noexcept;
  registry_entry& operator=(registry_entry&& other) noexcept;
  registry_entry(const registry_entry&) = delete;
  registry_entry& operator=(const registry_entry&) = delete;
  ~registry_entry();

  [[nodiscard]] void* address() const noexcept { return address_; }

  [[nodiscard]] std::size_t size_bytes() const noexcept { return bytes_; }

  /// NCCL's handle in the present generation; null when it has none, or no generation is ready.
  [[nodiscard]] void* handle() const;

  /// Whether the communicator is ready, with this in it.
  [[nodiscard]] bool is_current() const;

  void release();

 private:
  std::shared_ptr<registry> where_;
  std::uint64_t which_;
  void* address_;
  std::size_t bytes_;
};
}  // namespace detail

/// A registered buffer.
///
/// Free it, or let it go, before the memory is freed. A `device_buffer` that is freed earlier
/// deregisters itself first, and says so; for memory of another kind that is the program's part.
/// Cost: one native call to make it, one to release it, one at each reconnect; none to hold it.
class SPARK_COMM_API registration {
 public:
  explicit registration(detail::registry_entry entry) : entry_(std::move(entry)) {}

  [[nodiscard]] void* address() const noexcept { return entry_.address(); }

  [[nodiscard]] std::size_t size_bytes() const noexcept { return entry_.size_bytes(); }

  /// Whether it does anything: NCCL may succeed and take no notice (registration switched off,
  /// memory of a kind that it cannot use). False also while the communicator is not ready.
  [[nodiscard]] bool is_effective() const { return entry_.handle() != nullptr; }

  /// Takes it back. Again, or after the end of the communicator, it does nothing.
  /// Throws: invalid_usage, and nothing done, while operations are outstanding or another thread is
  /// inside the communicator.
  void release() { entry_.release(); }

 private:
  detail::registry_entry entry_;
};

/// A registered window: memory that kernels of all ranks reach by its offset.
///
/// As `registration`. Releasing it is this rank's own affair: no rank may use it any more.
class SPARK_COMM_API window {
 public:
  explicit window(detail::registry_entry entry) : entry_(std::move(entry)) {}

  [[nodiscard]] void* address() const noexcept { return entry_.address(); }

  [[nodiscard]] std::size_t size_bytes() const noexcept { return entry_.size_bytes(); }

  /// As for `registration`; between hosts most versions of NCCL make no window, and say nothing.
  [[nodiscard]] bool is_effective() const { return entry_.handle() != nullptr; }

  /// NCCL's handle, for kernels that use its device interface; null when it made none. Not valid
  /// after the generation in which it was asked for.
  /// Throws: invalid_usage while the communicator is not ready, or after `release`.
  [[nodiscard]] nccl::abi::window native() const;

  /// As `registration::release`.
  void release() { entry_.release(); }

 private:
  detail::registry_entry entry_;
};

}  // namespace spark_comm
