// SPDX-License-Identifier: AGPL-3.0-only
// One child: how it is started so that it cannot outlive us, and how it ended.
#pragma once

#include "descriptor.hpp"

#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace spark_comm::app {

/// Descriptor on which a child finds the pipe for its reports, when it is given one.
inline constexpr int report_descriptor = 3;

/// What to run.
struct child_command {
  std::vector<std::string> arguments;  ///< The program first: a path, or a name looked for in PATH.
  std::vector<std::pair<std::string, std::string>>
      environment;           ///< Set over what we have ourselves.
  bool with_report = false;  ///< Gives it a pipe on `report_descriptor`.
};

/// How a child ended.
struct child_end {
  int status = 0;  ///< Its exit code, unless a signal ended it.
  int signal = 0;  ///< The signal that ended it, or 0.

  [[nodiscard]] bool is_failure() const noexcept { return status != 0 || signal != 0; }

  /// As a shell has it: 128 + signal for a signal.
  [[nodiscard]] int exit_code() const noexcept { return signal != 0 ? 128 + signal : status; }
};

/// "was killed by signal 9 (SIGKILL)" or "ended with exit code 3".
[[nodiscard]] std::string to_text(const child_end& end);

/// A running child in a process group of its own, with pipes for what it says.
///
/// The kernel kills it when the thread that started it ends. Its standard input is empty.
/// The destructor kills what is still running and waits for it.
class child_process {
 public:
  /// Throws: failure (not_available) naming the program and why it cannot be started.
  [[nodiscard]] static child_process start(const child_command& command);

  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&&) = delete;
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  ~child_process();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Readable once the child has ended.
  [[nodiscard]] const descriptor& ended() const noexcept { return ended_; }

  /// Reading ends, not blocking. `report` is empty for a child without.
  [[nodiscard]] descriptor& output() noexcept { return output_; }

  [[nodiscard]] descriptor& error() noexcept { return error_; }

  [[nodiscard]] descriptor& report() noexcept { return report_; }

  /// How it ended; empty while it runs.
  [[nodiscard]] std::optional<child_end> poll_end();

  /// To its whole process group; nothing when it has ended.
  void send_signal(int number) noexcept;

 private:
  child_process() = default;

  pid_t pid_ = -1;
  std::optional<child_end> end_;
  descriptor ended_;
  descriptor output_;
  descriptor error_;
  descriptor report_;
};

}  // namespace spark_comm::app
