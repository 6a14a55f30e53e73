// SPDX-License-Identifier: AGPL-3.0-only
// Owned device memory and pinned host memory, and copies between them.
#pragma once

#include <spark_comm/core/device_span.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace spark_comm::cuda {

/// Device memory. Alignment: at least 256 bytes.
class SPARK_COMM_API device_buffer {
 public:
  /// Throws: invalid_argument for 0 bytes; out_of_memory.
  [[nodiscard]] static device_buffer allocate(const device& where, std::size_t bytes);

  /// Takes over memory that was allocated in another way; `free` is called once with its address
  /// and must not throw.
  [[nodiscard]] static device_buffer adopt(const device& where,
                                           void* address,
                                           std::size_t bytes,
                                           std::function<void(void*)> free);

  [[nodiscard]] void* address() const noexcept;
  [[nodiscard]] std::size_t size_bytes() const noexcept;
  [[nodiscard]] const device& owner() const noexcept;

  /// Has `before_free` called, as long as the answer is held, before the memory is freed: for
  /// whoever has given its address away. It must not throw. Threads: any.
  [[nodiscard]] std::shared_ptr<void> watch(std::function<void()> before_free) const;

  /// The memory as elements of T; a rest that holds no whole element is left out.
  template <typename T>
  [[nodiscard]] device_span<T> as() const noexcept {
    return {static_cast<T*>(address()), size_bytes() / sizeof(T)};
  }

 private:
  struct block;
  explicit device_buffer(std::unique_ptr<block, void (*)(block*)> owned);
  std::unique_ptr<block, void (*)(block*)> block_;
};

/// Page-locked host memory that the device can read and write.
class SPARK_COMM_API pinned_buffer {
 public:
  /// Throws: invalid_argument for 0 bytes; out_of_memory.
  [[nodiscard]] static pinned_buffer allocate(const device& where, std::size_t bytes);

  [[nodiscard]] void* address() const noexcept;
  /// The address under which the device sees it.
  [[nodiscard]] abi::device_ptr device_address() const;
  [[nodiscard]] std::size_t size_bytes() const noexcept;

  template <typename T>
  [[nodiscard]] T* as() const noexcept {
    return static_cast<T*>(address());
  }

 private:
  struct block;
  explicit pinned_buffer(std::unique_ptr<block, void (*)(block*)> owned);
  std::unique_ptr<block, void (*)(block*)> block_;
};

/// Copies between device and host memory in either direction (unified addressing).
/// Order: enqueued on `s`; pageable host memory may be read or written before the call returns.
SPARK_COMM_API void copy_async(
    const device& where, void* to, const void* from, std::size_t bytes, stream_ref s);

/// Sets every byte. Order: enqueued on `s`.
SPARK_COMM_API void fill_async(
    const device& where, void* to, std::uint8_t value, std::size_t bytes, stream_ref s);

}  // namespace spark_comm::cuda
