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

// Nothing to do, or others do it: naps, then sleeps. Naps are short after work of its own, because
// more is likely to come, and long when others do the work.
void stream::worker_rests(std::uint32_t seen, const worker_rest& rest) noexcept {
  const std::chrono::nanoseconds rested = clock::now() - rest.since;
  if (rested < linger_span) {
    worker_wake_.wait(
        seen, rest.after_others ? longest_nap : std::clamp(rested, attentive_nap, longest_nap));
    return;
  }
  // Sequentially consistent with push, see there. A synchronizer that leaves work behind notifies.
  worker_sleeps_.store(true, std::memory_order_seq_cst);
  if (may_rest()) {
    worker_wake_.wait(seen);
  }
  worker_sleeps_.store(false, std::memory_order_seq_cst);
}

void stream::run_worker() noexcept {
  prctl(PR_SET_TIMERSLACK, 1UL);  // naps of 50 us would become 100 us
  process_state& state = process();
  worker_rest rest{.since = clock::now(), .after_others = false};
  backoff patience{rest.since};
  std::uint64_t before = completed();
  // Acquire: nothing depends on it but the decision itself.
  while (!state.is_exiting.load(std::memory_order_acquire)) {
    const std::uint32_t seen = worker_wake_.epoch();
    const std::uint32_t progress_seen = state.progress.epoch();
    if (completed() != before) {
      before = completed();
      rest = {.since = clock::now(), .after_others = true};
      patience.reset(rest.since);
    }
    if (may_rest()) {
      if (worker_may_end()) {
        return;
      }
      worker_rests(seen, rest);
      patience.reset();
      continue;
    }
    const drive_result result = drive(submitted(), drive_mode::full);
    if (completed() != before) {
      before = completed();
      rest = {.since = clock::now(), .after_others = false};
      patience.reset(rest.since);
    }
    if (result != drive_result::reached) {
      patience.pause(state.progress, progress_seen);
    }
  }
}

}  // namespace spark_comm::host
