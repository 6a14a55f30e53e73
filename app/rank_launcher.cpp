// SPDX-License-Identifier: AGPL-3.0-only
#include "rank_launcher.hpp"

#include "child_process.hpp"
#include "descriptor.hpp"
#include "exit_code.hpp"
#include "line_splitter.hpp"
#include "quantity.hpp"

#include <spark_comm/core/time.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace spark_comm::app {
namespace {

descriptor& pipe_of(child_process& process, rank_channel from) {
  switch (from) {
    case rank_channel::output: return process.output();
    case rank_channel::error:  return process.error();
    case rank_channel::report: return process.report();
  }
  return process.report();
}

void wait_for_input(std::vector<pollfd>& watched, duration limit) {
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(limit + std::chrono::microseconds{999});
  const int timeout =
      static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(milliseconds.count(), 0, 60'000));
  if (::poll(watched.data(), watched.size(), timeout) < 0 && errno != EINTR) {
    throw failure(exit_code::failed, fmt::format("poll failed with errno {}", errno));
  }
}

constexpr std::array channels = {rank_channel::report, rank_channel::output, rank_channel::error};

}  // namespace

std::optional<rank_end> cause_of(std::span<const rank_end> ends) noexcept {
  std::optional<rank_end> cause;
  for (const rank_end& candidate : ends) {
    if (!candidate.end.is_failure()) {
      continue;
    }
    const bool is_stronger = cause && candidate.end.signal != 0 && cause->end.signal == 0;
    const bool is_earlier = cause && (candidate.end.signal != 0) == (cause->end.signal != 0) &&
                            candidate.rank < cause->rank;
    if (!cause || is_stronger || is_earlier) {
      cause = candidate;
    }
  }
  return cause;
}

std::string prefixed(int rank, std::string_view line) {
  return fmt::format("[rank {}] {}", rank, line);
}

rank_launcher::rank_launcher(const launch_limits& limits, line_handler on_line, int first_rank)
    : limits_(limits),
      on_line_(std::move(on_line)),
      first_rank_(first_rank),
      run_until_(deadline::after(limits.run)) {}

int rank_launcher::start(const child_command& command) {
  const int rank = first_rank_ + static_cast<int>(ranks_.size());
  ranks_.push_back({.rank = rank, .process = child_process::start(command)});
  return rank;
}

launch_result rank_launcher::run() {
  run_until_ = deadline::after(limits_.run);
  while (!is_over()) {
    std::vector<pollfd> watched = {{.fd = requests_.get(), .events = POLLIN, .revents = 0}};
    for (rank_process& one : ranks_) {
      if (one.is_over) {
        continue;
      }
      watched.push_back({.fd = one.process.ended().get(), .events = POLLIN, .revents = 0});
      for (const rank_channel from : channels) {
        if (const descriptor& pipe = pipe_of(one.process, from)) {
          watched.push_back({.fd = pipe.get(), .events = POLLIN, .revents = 0});
        }
      }
    }
    wait_for_input(watched, next_wake());
    if (const int signal = requests_.take(); signal != 0) {
      hear_signal(signal);
    }
    for (rank_process& one : ranks_) {
      read_all(one);
    }
    reap();
    end_by_limit();
    kill_after_grace();
  }
  return result_;
}

void rank_launcher::read_all(rank_process& one) {
  for (const rank_channel from : channels) {
    if (!one.is_over && pipe_of(one.process, from)) {
      read_channel(one, from);
    }
  }
}

void rank_launcher::read_channel(rank_process& one, rank_channel from) {
  descriptor& pipe = pipe_of(one.process, from);
  line_splitter& lines = from == rank_channel::report   ? one.report
                         : from == rank_channel::output ? one.output
                                                        : one.error;
  const auto handle = [&](std::string_view line) { on_line_(one.rank, from, line); };
  std::array<char, 65536> piece{};
  // At most so many pieces at a time, so that one talkative rank cannot keep us from the others.
  for (int round = 0; round < 64; ++round) {
    const ssize_t bytes = ::read(pipe.get(), piece.data(), piece.size());
    if (bytes > 0) {
      lines.feed({piece.data(), static_cast<std::size_t>(bytes)}, handle);
    } else if (bytes < 0 && errno == EINTR) {
      continue;
    } else if (bytes < 0 && errno == EAGAIN) {
      return;
    } else {
      lines.flush(handle);
      pipe.reset();
      return;
    }
  }
}

void rank_launcher::reap() {
  std::vector<rank_end> ends;
  for (rank_process& one : ranks_) {
    if (one.is_over) {
      continue;
    }
    if (const std::optional<child_end> end = one.process.poll_end()) {
      // What it wrote before it ended is in the pipes; a grandchild may hold them open for ever.
      read_all(one);
      one.is_over = true;
      ends.push_back({.rank = one.rank, .end = *end});
    }
  }
  const std::optional<rank_end> cause = cause_of(ends);
  if (cause && !kill_at_) {
    result_.first_failure = cause;
    result_.exit_code = cause->end.exit_code();
    result_.text = fmt::format("rank {} {}", cause->rank, to_text(cause->end));
    begin_end(0);
  }
}

void rank_launcher::hear_signal(int signal) {
  if (signal != SIGUSR1 && signal != SIGUSR2) {
    begin_end(signal);
    return;
  }
  for (rank_process& one : ranks_) {
    one.process.send_signal(signal);
  }
}

void rank_launcher::begin_end(int signal) {
  if (kill_at_) {
    return;
  }
  if (signal != 0) {
    result_.exit_code = 128 + signal;
    result_.text = fmt::format("interrupted by SIG{}", ::sigabbrev_np(signal));
  }
  for (rank_process& one : ranks_) {
    one.process.send_signal(signal != 0 ? signal : SIGTERM);
  }
  kill_at_ = deadline::after(limits_.grace);
}

void rank_launcher::end_by_limit() {
  if (!kill_at_ && run_until_.has_passed() && !is_over()) {
    result_.exit_code = static_cast<int>(exit_code::failed);
    result_.text = fmt::format("the run was ended: it took longer than its limit of {}",
                               duration_text(limits_.run));
    begin_end(0);
  }
}

void rank_launcher::kill_after_grace() {
  if (kill_at_ && kill_at_->has_passed()) {
    for (rank_process& one : ranks_) {
      one.process.send_signal(SIGKILL);
    }
    // Once more after a while: a group may have been forking while it was killed.
    kill_at_ = deadline::after(limits_.grace);
  }
}

bool rank_launcher::is_over() const noexcept {
  return std::ranges::all_of(ranks_, [](const rank_process& one) { return one.is_over; });
}

duration rank_launcher::next_wake() const noexcept {
  return kill_at_ ? kill_at_->remaining() : run_until_.remaining();
}

}  // namespace spark_comm::app
