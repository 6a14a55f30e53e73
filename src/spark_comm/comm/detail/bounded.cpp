// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/bounded.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace spark_comm::detail {

struct bounded_call::shared_state {
  std::function<void()> work;
  std::mutex mutex;
  std::condition_variable over;
  bool is_over = false;
  std::exception_ptr failure;
  std::thread thread;

  void run() noexcept {
    std::exception_ptr caught;
    try {
      work();
    } catch (...) {
      caught = std::current_exception();
    }
    work = nullptr;  // what it owned goes before anybody hears that it is over
    const std::scoped_lock lock{mutex};
    failure = caught;
    is_over = true;
    over.notify_all();
  }
};

bounded_call::bounded_call(std::function<void()> work) : state_(std::make_shared<shared_state>()) {
  state_->work = std::move(work);
  try {
    state_->thread = std::thread{[state = state_] { state->run(); }};
  } catch (const std::system_error& failure) {
    throw_errno("pthread_create", "no thread for a bounded call", failure.code().value());
  }
}

bounded_call::~bounded_call() {
  std::unique_lock lock{state_->mutex};
  const bool is_over = state_->is_over;
  lock.unlock();
  if (is_over) {
    state_->thread.join();
  } else {
    state_->thread.detach();
  }
}

progress bounded_call::poll() {
  {
    const std::scoped_lock lock{state_->mutex};
    if (!state_->is_over) {
      return progress::pending;
    }
  }
  rethrow();
  return progress::done;
}

wait_result bounded_call::wait(const deadline& until) {
  {
    std::unique_lock lock{state_->mutex};
    if (!state_->over.wait_for(lock, until.remaining(), [&] { return state_->is_over; })) {
      return wait_result::timed_out;
    }
  }
  rethrow();
  return wait_result::done;
}

void bounded_call::rethrow() const {
  if (state_->failure) {
    std::rethrow_exception(state_->failure);
  }
}

}  // namespace spark_comm::detail
