// SPDX-License-Identifier: AGPL-3.0-only
// Starts the ranks of a job as processes of this machine and looks after them: one that fails ends
// all, nothing runs longer than its limit, and nothing is left behind.
#pragma once

#include "child_process.hpp"
#include "line_splitter.hpp"
#include "signal_scope.hpp"

#include <spark_comm/core/time.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spark_comm::app {

/// Where a line of a rank came from.
enum class rank_channel : std::uint8_t {
  output,  ///< Its standard output.
  error,   ///< Its standard error.
  report,  ///< Its report pipe.
};

/// Bounds of a job.
struct launch_limits {
  /// Of the whole run.
  duration run = std::chrono::minutes{10};
  /// Between the request to end (SIGTERM) and the kill (SIGKILL).
  duration grace = std::chrono::seconds{2};
};

/// The end of one rank.
struct rank_end {
  int rank = 0;
  child_end end;
};

/// How a job ended.
struct launch_result {
  /// 0, or the first failing rank's (128 + signal); 128 + signal when we were interrupted; 4 when
  /// the limit passed.
  int exit_code = 0;
  /// The rank that failed first, if one did.
  std::optional<rank_end> first_failure;
  /// One line on what went wrong; empty when nothing did.
  std::string text;
};

/// The cause among ranks that ended so close together that their order is not known: one ended by a
/// signal before one that ended itself, because losing a peer makes the others fail; else the
/// lowest rank. Empty when none failed.
[[nodiscard]] std::optional<rank_end> cause_of(std::span<const rank_end> ends) noexcept;

/// "[rank 1] line", as the lines of several ranks are told apart on one terminal.
[[nodiscard]] std::string prefixed(int rank, std::string_view line);

/// Threads: one. It passes SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 on to every rank while it
/// runs; the first three are a request to end, and what has not ended after the grace is killed.
class rank_launcher {
 public:
  /// Called for every line of a rank, while `run` runs; may start further ranks, and may throw,
  /// which ends all ranks.
  using line_handler = std::function<void(int rank, rank_channel from, std::string_view line)>;

  /// The ranks are numbered from `first_rank` on.
  rank_launcher(const launch_limits& limits, line_handler on_line, int first_rank = 0);

  /// Starts the next rank and returns its number. Throws: failure when it cannot be started.
  int start(const child_command& command);

  /// Returns when every rank has ended.
  [[nodiscard]] launch_result run();

 private:
  struct rank_process {
    int rank = 0;
    child_process process;
    line_splitter output{};
    line_splitter error{};
    line_splitter report{};
    bool is_over = false;
  };

  void read_all(rank_process& one);
  void read_channel(rank_process& one, rank_channel from);
  void reap();
  void hear_signal(int signal);
  void begin_end(int signal);
  void end_by_limit();
  void kill_after_grace();
  [[nodiscard]] bool is_over() const noexcept;
  [[nodiscard]] duration next_wake() const noexcept;

  signal_scope requests_;
  launch_limits limits_;
  line_handler on_line_;
  int first_rank_ = 0;
  deadline run_until_;
  std::optional<deadline> kill_at_;
  std::list<rank_process> ranks_;  // a list: a handler may add one while we walk over it
  launch_result result_;
};

}  // namespace spark_comm::app
