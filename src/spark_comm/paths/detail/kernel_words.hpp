// SPDX-License-Identifier: AGPL-3.0-only
// What the host and the exchange kernels tell each other, in pinned memory: kernels report the wait
// that ran out, the host tells them to give up.
#pragma once

#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/kernels/peer_segment.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace spark_comm::detail {

/// Threads: any.
class kernel_words {
 public:
  kernel_words(const cuda::device& where, std::size_t slots);

  /// Ends every kernel that waits, and every later one that has to.
  void abort() const noexcept;

  /// The first report found; none while all is well.
  [[nodiscard]] std::optional<native_failure> failure() const;

  // Device addresses.
  [[nodiscard]] kernels::exchange_status* status(std::size_t slot) const noexcept;
  [[nodiscard]] const std::uint32_t* abort_word() const noexcept;

 private:
  // Lines of their own: kernels poll the word while others report.
  static constexpr std::size_t line = 128;

  [[nodiscard]] std::byte* host_line(std::size_t index) const noexcept {
    return memory_.as<std::byte>() + index * line;
  }

  std::size_t slots_;
  cuda::pinned_buffer memory_;  // the abort word, then a status a slot
  std::byte* device_base_;
};

}  // namespace spark_comm::detail
