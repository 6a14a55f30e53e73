// SPDX-License-Identifier: AGPL-3.0-only
// The generations of one communicator. Each is a core of its own, and one that is over stays what
// it has become: whatever comes late out of it finds a broken core, and never the next one.
#pragma once

#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/registry.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/cuda/device.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace spark_comm::detail {

/// Threads: any, but for `begin`, which is for the thread that issues operations.
class generations {
 public:
  explicit generations(std::shared_ptr<communicator_core> first)
      : registered_(first->registered()),
        loaded_(first->loaded()),
        device_(first->device()),
        name_(first->options().name),
        now_(std::move(first)),
        present_(now_.get()) {}

  /// For the thread that issues; it stays valid until the next generation but one begins.
  [[nodiscard]] communicator_core& present() const noexcept {
    // Acquire: a thread that sees the core sees how it was made.
    return *present_.load(std::memory_order_acquire);
  }

  /// For other threads: what they hold does not go while they look at it.
  [[nodiscard]] std::shared_ptr<communicator_core> hold() const {
    const std::scoped_lock lock{mutex_};
    return now_;
  }

  void begin(std::shared_ptr<communicator_core> next) {
    std::shared_ptr<communicator_core> oldest;  // ends outside the lock
    const std::scoped_lock lock{mutex_};
    // The last one is kept: another thread may be about to learn that it is over.
    oldest = std::exchange(last_, std::exchange(now_, std::move(next)));
    present_.store(now_.get(), std::memory_order_release);
  }

  // The same in all of them.
  [[nodiscard]] const std::shared_ptr<registry>& registered() const noexcept { return registered_; }

  [[nodiscard]] const runtime& loaded() const noexcept { return loaded_; }

  [[nodiscard]] const cuda::device& device() const noexcept { return device_; }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::shared_ptr<registry> registered_;
  runtime loaded_;
  cuda::device device_;
  std::string name_;
  mutable std::mutex mutex_;
  std::shared_ptr<communicator_core> now_;
  std::shared_ptr<communicator_core> last_;
  std::atomic<communicator_core*> present_;
};

}  // namespace spark_comm::detail
