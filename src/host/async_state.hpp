// SPDX-License-Identifier: AGPL-3.0-only
// What ncclCommGetAsyncError answers: success, in progress, or the first error, which stays.
#pragma once

#include "nccl_abi.hpp"

#include <atomic>

namespace spark_comm::host::nccl {

/// Threads: any.
class async_state {
 public:
  [[nodiscard]] int get() const noexcept { return code_.load(std::memory_order_acquire); }

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
  bool replace(int expected, int desired) noexcept {
    return code_.compare_exchange_strong(expected, desired, std::memory_order_acq_rel);
  }

  std::atomic<int> code_{results::success};
};

}  // namespace spark_comm::host::nccl
