// SPDX-License-Identifier: AGPL-3.0-only
// Calls that may never return: run on a thread of their own, and waited for no longer than told.
#pragma once

#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>

#include <functional>
#include <memory>

namespace spark_comm::detail {

/// A call on a fresh thread.
///
/// A fresh thread each time, because NCCL leaves a thread's group depth raised after some errors:
/// the thread is retired with the call. A thread that has not ended when the object goes is left
/// behind; the work must therefore own whatever it touches.
class bounded_call {
 public:
  /// Throws: system_failed when no thread can be had.
  [[nodiscard]] explicit bounded_call(std::function<void()> work);
  bounded_call(const bounded_call&) = delete;
  bounded_call& operator=(const bounded_call&) = delete;
  bounded_call(bounded_call&&) = delete;
  bounded_call& operator=(bounded_call&&) = delete;
  ~bounded_call();

  /// Whether the work is over. Throws what it threw, each time.
  [[nodiscard]] progress poll();

  /// Waits until the work is over. Throws what it threw.
  [[nodiscard]] wait_result wait(const deadline& until);

 private:
  struct shared_state;

  void rethrow() const;

  std::shared_ptr<shared_state> state_;
};

}  // namespace spark_comm::detail
