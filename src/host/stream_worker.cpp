// SPDX-License-Identifier: AGPL-3.0-only
// The worker of a stream: makes progress while nobody synchronizes.
//
// It stays out of the way of the usual pattern, enqueue and synchronize at once: an enqueue does
// not wake it out of a nap, so that the synchronizing thread runs the work without a thread
// hand-over. Work that nobody waits for starts after a nap at the latest.
#include "backoff.hpp"
#include "process.hpp"
#include "stream_state.hpp"
#include "wake_signal.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <sys/prctl.h>
#include <thread>

namespace spark_comm::host {

namespace {

using clock = std::chrono::steady_clock;

// How long an idle worker naps before it sleeps until it is woken.
constexpr std::chrono::nanoseconds linger_span = std::chrono::milliseconds{5};
// A nap right after work of its own: more is likely to come.
constexpr std::chrono::nanoseconds attentive_nap = std::chrono::microseconds{50};
// A look at the process's exit flag while others drive.
constexpr std::chrono::nanoseconds bystander_nap = std::chrono::milliseconds{100};

}  // namespace

void stream::start_worker() {
  // Detached: it owns the stream, and ends when the stream is closed and drained. At process exit
  // it is left to the kernel, because joining could wait for foreign code without end.
  std::thread{[self = shared_from_this()] { self->run_worker(); }}.detach();
  has_worker_ = true;
}

void stream::close() noexcept {
  {
    const std::lock_guard lock{queue_mutex_};
    is_closing_ = true;
  }
  worker_wake_.notify();
}

bool stream::worker_may_end() noexcept {
  const std::lock_guard lock{queue_mutex_};
  if (!is_closing_ || !is_idle()) {
    return false;
  }
  has_worker_ = false;
  return true;
}

// Idle: naps that grow from the last activity on, then sleeps.
void stream::worker_idles(std::uint32_t seen, clock::time_point active) noexcept {
  const auto idle_for = clock::now() - active;
  if (idle_for < linger_span) {
    worker_wake_.wait(seen,
                      std::clamp<std::chrono::nanoseconds>(idle_for, attentive_nap, longest_nap));
    return;
  }
  // Sequentially consistent with push, see there.
  worker_sleeps_.store(true, std::memory_order_seq_cst);
  if (is_idle()) {
    worker_wake_.wait(seen);
  }
  worker_sleeps_.store(false, std::memory_order_seq_cst);
}

void stream::run_worker() noexcept {
  prctl(PR_SET_TIMERSLACK, 1UL);  // naps of 50 us would become 100 us
  process_state& state = process();
  clock::time_point active = clock::now();
  backoff patience{active};
  std::uint64_t before = completed();
  // Acquire: nothing depends on it but the decision itself.
  while (!state.is_exiting.load(std::memory_order_acquire)) {
    const std::uint32_t seen = worker_wake_.epoch();
    const std::uint32_t progress_seen = state.progress.epoch();
    if (is_idle()) {
      if (worker_may_end()) {
        return;
      }
      if (completed() != before) {
        before = completed();
        active = clock::now();
      }
      worker_idles(seen, active);
      patience.reset();
      continue;
    }
    if (synchronizers_.load(std::memory_order_seq_cst) > 0) {
      worker_wake_.wait(seen, bystander_nap);
      continue;
    }
    const drive_result result = drive(submitted(), drive_mode::full);
    if (completed() != before) {
      before = completed();
      active = clock::now();
      patience.reset(active);
    }
    if (result != drive_result::reached) {
      patience.pause(state.progress, progress_seen);
    }
  }
}

}  // namespace spark_comm::host
