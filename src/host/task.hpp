// SPDX-License-Identifier: AGPL-3.0-only
// A piece of stream work that may have to wait for other ranks or streams: a coroutine that is
// resumed by whoever drives the stream, and destroyed to cancel it.
//
// A collective is thus written as straight-line code, and waits without holding a thread: the
// worker of a stream, or any thread that synchronizes with it, polls what it waits for.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace spark_comm::host {

/// What a suspended task waits for. Lives in the task's own frame.
class waitable {
 public:
  waitable() = default;
  waitable(const waitable&) = delete;
  waitable& operator=(const waitable&) = delete;
  waitable(waitable&&) = delete;
  waitable& operator=(waitable&&) = delete;
  virtual ~waitable() = default;

  /// True once the task may go on. Cheap, without side effects that matter when repeated.
  [[nodiscard]] virtual bool is_ready() noexcept = 0;
};

/// A lazily started coroutine that returns nothing. Move-only owner of its frame.
class [[nodiscard]] task {
 public:
  struct promise_type {
    waitable* waiting_for = nullptr;

    task get_return_object() noexcept {
      return task{std::coroutine_handle<promise_type>::from_promise(*this)};
    }

    std::suspend_always initial_suspend() noexcept { return {}; }

    std::suspend_always final_suspend() noexcept { return {}; }

    void return_void() noexcept {}

    // Stream work has nobody to throw to: whatever can fail is checked before it is enqueued.
    void unhandled_exception() noexcept { std::terminate(); }
  };

  task() noexcept = default;
  task(const task&) = delete;
  task& operator=(const task&) = delete;

  task(task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}

  task& operator=(task&& other) noexcept {
    if (this != &other) {
      destroy();
      frame_ = std::exchange(other.frame_, nullptr);
    }
    return *this;
  }

  ~task() { destroy(); }

  /// Runs until the task is finished or waits for something that is not ready.
  /// Returns whether it is finished. One thread at a time.
  bool advance() noexcept {
    while (!frame_.done()) {
      waitable* waiting = frame_.promise().waiting_for;
      if (waiting != nullptr && !waiting->is_ready()) {
        return false;
      }
      frame_.promise().waiting_for = nullptr;
      frame_.resume();
    }
    return true;
  }

 private:
  explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

  void destroy() noexcept {
    if (frame_) {
      frame_.destroy();
    }
  }

  std::coroutine_handle<promise_type> frame_;
};

/// `co_await until([&] { return flag reached; });`
template <typename Predicate>
class until final : public waitable {
 public:
  explicit until(Predicate predicate) : predicate_(std::move(predicate)) {}

  [[nodiscard]] bool is_ready() noexcept override { return predicate_(); }

  [[nodiscard]] bool await_ready() noexcept { return predicate_(); }

  void await_suspend(std::coroutine_handle<task::promise_type> frame) noexcept {
    frame.promise().waiting_for = this;
  }

  void await_resume() const noexcept {}

 private:
  Predicate predicate_;
};

}  // namespace spark_comm::host
