// SPDX-License-Identifier: AGPL-3.0-only
// Linux futexes behind the signal.
#include "wake_signal.hpp"

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace spark_comm::host {

namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// The result is of no interest: interrupted, timed out and changed all mean "look again".
void futex(std::atomic<std::uint32_t>& word,
           int operation,
           std::uint32_t value,
           const timespec* limit) noexcept {
  static_cast<void>(syscall(SYS_futex, &word, operation, value, limit, nullptr, 0));
}

}  // namespace

void wake_signal::wait(std::uint32_t seen, std::chrono::nanoseconds limit) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  timespec span{};
  span.tv_sec = static_cast<std::time_t>(seconds.count());
  span.tv_nsec = static_cast<long>((limit - seconds).count());
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  futex(epoch_, FUTEX_WAIT_PRIVATE, seen, &span);
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

void wake_signal::wait(std::uint32_t seen) noexcept {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  futex(epoch_, FUTEX_WAIT_PRIVATE, seen, nullptr);
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

void wake_signal::wake_all() noexcept {
  futex(epoch_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr);
}

}  // namespace spark_comm::host
