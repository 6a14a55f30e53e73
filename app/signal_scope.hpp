// SPDX-License-Identifier: AGPL-3.0-only
// Requests to end (SIGINT, SIGTERM, SIGHUP) as something to wait for.
#pragma once

#include "descriptor.hpp"

#include <csignal>

namespace spark_comm::app {

/// While it lives, requests to end (SIGINT, SIGTERM, SIGHUP) and messages to the program (SIGUSR1,
/// SIGUSR2) come as readable data in place of ending this process.
/// Threads: the one that made it.
class signal_scope {
 public:
  [[nodiscard]] signal_scope();
  signal_scope(const signal_scope&) = delete;
  signal_scope& operator=(const signal_scope&) = delete;
  signal_scope(signal_scope&&) = delete;
  signal_scope& operator=(signal_scope&&) = delete;
  ~signal_scope();

  /// Readable when a request is there.
  [[nodiscard]] int get() const noexcept { return requests_.get(); }

  /// The signal that arrived, or 0.
  [[nodiscard]] int take() noexcept;

 private:
  sigset_t before_{};
  descriptor requests_;
};

}  // namespace spark_comm::app
