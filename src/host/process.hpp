// SPDX-License-Identifier: AGPL-3.0-only
// The state that a C ABI without an object of its own cannot do without, all of it, in one place.
#pragma once

#include "capture.hpp"
#include "devices.hpp"
#include "driver_abi.hpp"
#include "event.hpp"
#include "graph.hpp"
#include "handle_registry.hpp"
#include "ipc.hpp"
#include "memory.hpp"
#include "module.hpp"
#include "stream_state.hpp"
#include "wake_signal.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace spark_comm::host {

/// The captures of the process.
struct capture_table {
  std::mutex mutex;
  std::vector<std::shared_ptr<capture>> active;
  /// How many of `active` are not relaxed; zero lets unsafe calls pass without the lock.
  std::atomic<int> strict = 0;
};

/// Streams that were destroyed while they had work.
class closed_streams {
 public:
  void add(const stream_ptr& closed) {
    const std::lock_guard lock{mutex_};
    streams_.emplace_back(closed);
  }

  /// Those that still live; some may have become idle.
  [[nodiscard]] std::vector<stream_ptr> alive() {
    const std::lock_guard lock{mutex_};
    std::vector<stream_ptr> found;
    std::erase_if(streams_, [&found](const std::weak_ptr<stream>& each) {
      stream_ptr living = each.lock();
      if (living == nullptr) {
        return true;
      }
      found.push_back(std::move(living));
      return false;
    });
    return found;
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<stream>> streams_;
};

struct process_state {
  std::mutex init_mutex;
  std::atomic<bool> is_initialized = false;
  std::atomic<bool> is_exiting = false;
  bool is_forked = false;
  device_list devices;

  /// Moves whenever an item of any stream is finished.
  wake_signal progress;

  memory_table memory;
  imported_memory imported;
  capture_table captures;

  handle_registry<stream> streams{0x51};
  closed_streams closing;
  handle_registry<event> events{0x52};
  handle_registry<graph> graphs{0x53};
  handle_registry<executable> executables{0x54};
  handle_registry<module> modules{0x55};
  handle_registry<kernel> kernels{0x56};
};

/// The process's state. Never destroyed: workers and the program's own static objects may still use
/// it while the process exits, and leaving it to the kernel lets exit never wait for a thread.
[[nodiscard]] process_state& process() noexcept;

/// cuInit. Also arranges that workers start nothing new at exit, and that the child of a fork,
/// which has no workers, is refused.
[[nodiscard]] driver::result initialize();

}  // namespace spark_comm::host
