// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/ticker.hpp>

#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace spark_comm {

void ticker::start(step_function step, std::function<void()> prepare) {
  try {
    thread_ = std::thread{[this, step = std::move(step), prepare = std::move(prepare)] {
      if (prepare) {
        prepare();
      }
      run(step);
    }};
  } catch (const std::system_error& failure) {
    throw_errno("pthread_create",
                "cannot start the thread that supervises the communicator",
                failure.code().value());
  }
}

void ticker::run(const step_function& step) noexcept {
  while (true) {
    {
      const std::scoped_lock lock{mutex_};
      if (is_stopping_) {
        return;
      }
      is_woken_ = false;  // a wake during the step counts for the next one
    }
    const time_point next = step();
    std::unique_lock lock{mutex_};
    changed_.wait_until(lock, next, [this] { return is_woken_ || is_stopping_; });
  }
}

void ticker::wake() noexcept {
  {
    const std::scoped_lock lock{mutex_};
    is_woken_ = true;
  }
  changed_.notify_one();
}

void ticker::stop() noexcept {
  {
    const std::scoped_lock lock{mutex_};
    is_stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

}  // namespace spark_comm
