// SPDX-License-Identifier: AGPL-3.0-only
// What ncclCommGetAsyncError answers: success, in progress, or the first error, which stays.
#pragma once

#include "nccl_abi.hpp"

#include <atomic>
#include <cstdint>

namespace spark_comm::host::nccl {

/// Threads: any.
class async_state {
 public:
  [[nodiscard]] int get() const noexcept {
    return pretended_polls_.load(std::memory_order_relaxed) > 0 ? results::in_progress : actual();
  }

  /// Whether background work goes on, whatever is pretended.
  [[nodiscard]] bool is_working() const noexcept { return actual() == results::in_progress; }

  /// The answer to a program that polls: `get`, and one of the pretended answers less.
  [[nodiscard]] int poll() noexcept {
    const int now = get();
    if (pretended_polls_.load(std::memory_order_relaxed) > 0 && --pretended_polls_ == 0 &&
        pretended_code_ != results::success) {
      fail(pretended_code_);
    }
    return now;
  }

  /// In progress for so many polls; afterwards `code`, or what it really is when that is success.
  void pretend(std::uint64_t polls, int code) noexcept {
    pretended_code_ = code;
    pretended_polls_ = polls;
  }

  /// Background work begins: success becomes in progress.
  void begin() noexcept { replace(results::success, results::in_progress); }

  /// Background work is over. An error that came meanwhile stays.
  void finish(int code) noexcept {
    // Release (in replace): what the work wrote, output pointers included, is visible to the
    // poller.
    if (!replace(results::in_progress, code) && code != results::success) {
      fail(code);
    }
  }

  /// An error, unless there is one already.
  void fail(int code) noexcept {
    if (!replace(results::success, code)) {
      replace(results::in_progress, code);
    }
  }

 private:
  [[nodiscard]] int actual() const noexcept { return code_.load(std::memory_order_acquire); }

  bool replace(int expected, int desired) noexcept {
    return code_.compare_exchange_strong(expected, desired, std::memory_order_acq_rel);
  }

  std::atomic<int> code_{results::success};
  std::atomic<std::uint64_t> pretended_polls_{0};  // counted down by one thread at a time
  std::atomic<int> pretended_code_{results::success};
};

}  // namespace spark_comm::host::nccl
