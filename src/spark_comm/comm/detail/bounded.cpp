// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/bounded.hpp>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>

namespace spark_comm::detail {
namespace {

struct call {
  std::function<void()> work;
  std::mutex mutex;
  std::condition_variable over;
  bool is_over = false;
  std::exception_ptr failure;
};

void run(const std::shared_ptr<call>& shared) noexcept {
  std::exception_ptr failure;
  try {
    shared->work();
  } catch (...) {
    failure = std::current_exception();
  }
  shared->work = nullptr;  // what it owned goes before anybody hears that it is over
  const std::scoped_lock lock{shared->mutex};
  shared->failure = failure;
  shared->is_over = true;
  shared->over.notify_one();
}

}  // namespace

wait_result run_bounded(std::function<void()> work, const deadline& until) {
  auto shared = std::make_shared<call>();
  shared->work = std::move(work);
  std::thread thread;
  try {
    thread = std::thread{run, shared};
  } catch (const std::system_error& failure) {
    throw_errno("pthread_create", "no thread for a bounded call", failure.code().value());
  }
  std::unique_lock lock{shared->mutex};
  shared->over.wait_for(lock, until.remaining(), [&] { return shared->is_over; });
  if (!shared->is_over) {
    lock.unlock();
    thread.detach();
    return wait_result::timed_out;
  }
  lock.unlock();
  thread.join();
  if (shared->failure) {
    std::rethrow_exception(shared->failure);
  }
  return wait_result::done;
}

}  // namespace spark_comm::detail
