// SPDX-License-Identifier: AGPL-3.0-only
// The wait of a collective: until its condition holds, or until its communicator is stopped.
#pragma once

#include "communicator.hpp"
#include "task.hpp"

#include <coroutine>
#include <utility>

namespace spark_comm::host::nccl {

/// `if (!co_await unless_stopped(comm, [...] { return condition; })) { co_return; }`
template <typename Predicate>
class [[nodiscard]] unless_stopped final : public waitable {
 public:
  unless_stopped(const communicator& comm, Predicate is_met) noexcept
      : comm_(comm), is_met_(std::move(is_met)) {}

  [[nodiscard]] bool is_ready() noexcept override {
    if (comm_.is_stopping()) {
      is_stopped_ = true;
    }
    return is_stopped_ || is_met_();
  }

  [[nodiscard]] bool await_ready() noexcept { return is_ready(); }

  void await_suspend(std::coroutine_handle<task::promise_type> frame) noexcept {
    frame.promise().waiting_for = this;
  }

  /// True when the condition holds; false when the task must end now.
  [[nodiscard]] bool await_resume() const noexcept { return !is_stopped_; }

 private:
  const communicator& comm_;
  Predicate is_met_;
  bool is_stopped_ = false;
};

}  // namespace spark_comm::host::nccl
