// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/call_gate.hpp>
#include <spark_comm/core/time.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace spark_comm::detail {

call_gate::entry call_gate::enter_as_issuer() noexcept {
  std::uint32_t seen = 0;
  // Acquire: what the last one inside wrote about the communicator is visible to us.
  while (!state_.compare_exchange_weak(
      seen, issuer_inside, std::memory_order_acquire, std::memory_order_relaxed)) {
    if ((seen & closed_bit) != 0) {
      return entry::closed;
    }
    if ((seen & issuer_inside) != 0) {
      return entry::busy;
    }
    if ((seen & poller_inside) != 0) {
      std::this_thread::yield();  // the poller may have been descheduled inside
    }
    seen = 0;
  }
  return entry::entered;
}

call_gate::entry call_gate::enter_as_poller() noexcept {
  std::uint32_t seen = 0;
  if (state_.compare_exchange_strong(
          seen, poller_inside, std::memory_order_acquire, std::memory_order_relaxed)) {
    return entry::entered;
  }
  return (seen & closed_bit) != 0 ? entry::closed : entry::busy;
}

void call_gate::leave() noexcept {
  // Release: the next one inside, or the abort that waits for us, sees what we wrote.
  state_.fetch_and(closed_bit, std::memory_order_release);
}

void call_gate::close() noexcept {
  state_.fetch_or(closed_bit, std::memory_order_acq_rel);
}

bool call_gate::wait_until_empty(const deadline& until) const noexcept {
  while ((state_.load(std::memory_order_acquire) & ~closed_bit) != 0) {
    if (until.has_passed()) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds{50});
  }
  return true;
}

}  // namespace spark_comm::detail
