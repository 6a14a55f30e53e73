// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/kernels/peer_segment.hpp>
#include <spark_comm/paths/detail/kernel_words.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <optional>

namespace spark_comm::detail {
namespace {

native_failure failure_of(const kernels::exchange_status& status) {
  const bool is_late = status.failure == kernels::exchange_failure::timed_out;
  return {.code = is_late ? errc::timed_out : errc::aborted,
          .text = fmt::format("{} rank {} to come to an exchange (round {}, block {})",
                              is_late ? "a kernel waited in vain for"
                                      : "the communicator was aborted while a kernel waited for",
                              status.peer,
                              status.round,
                              status.block),
          .peers = {static_cast<int>(status.peer)}};
}

}  // namespace

kernel_words::kernel_words(const cuda::device& where, std::size_t slots)
    : slots_(slots),
      memory_(cuda::pinned_buffer::allocate(where, (slots + 1) * line)),
      device_base_(
          std::bit_cast<std::byte*>(static_cast<std::uintptr_t>(memory_.device_address()))) {
  static_assert(sizeof(kernels::exchange_status) <= line);
  std::memset(memory_.address(), 0, memory_.size_bytes());
}

void kernel_words::abort() const noexcept {
  // Relaxed: the word stands for itself.
  std::atomic_ref{*reinterpret_cast<std::uint32_t*>(host_line(0))}.store(1,
                                                                         std::memory_order_relaxed);
}

std::optional<native_failure> kernel_words::failure() const {
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    auto& status = *reinterpret_cast<kernels::exchange_status*>(host_line(slot + 1));
    // Acquire: the kernel wrote the rest before.
    if (std::atomic_ref{status.failure}.load(std::memory_order_acquire) !=
        kernels::exchange_failure::none) {
      return failure_of(status);
    }
  }
  return std::nullopt;
}

kernels::exchange_status* kernel_words::status(std::size_t slot) const noexcept {
  return reinterpret_cast<kernels::exchange_status*>(device_base_ + (slot + 1) * line);
}

const std::uint32_t* kernel_words::abort_word() const noexcept {
  return reinterpret_cast<const std::uint32_t*>(device_base_);
}

}  // namespace spark_comm::detail
