// SPDX-License-Identifier: AGPL-3.0-only
// A thread that does one thing again and again and sleeps in between. What it does is decided
// elsewhere.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace spark_comm {

/// Calls `step` at once, and then whenever the time that it returned has come or somebody woke it.
///
/// Threads: `wake` any; `stop` any but the ticker's own.
class SPARK_COMM_API ticker {
 public:
  /// One step; gives the time of the next. Must not throw.
  using step_function = std::function<time_point()>;

  ticker() = default;
  ticker(const ticker&) = delete;
  ticker& operator=(const ticker&) = delete;
  ticker(ticker&&) = delete;
  ticker& operator=(ticker&&) = delete;

  ~ticker() { stop(); }

  /// `prepare` runs once on the new thread, before the first step. Who: once.
  /// Throws: system_failed when no thread is to be had.
  void start(step_function step, std::function<void()> prepare = {});

  /// Makes the next step come now. Never blocks longer than the lock is held, and no step holds it.
  void wake() noexcept;

  /// Returns when the step under way, if any, is over. Idempotent.
  void stop() noexcept;

 private:
  void run(const step_function& step) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_woken_ = false;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace spark_comm
