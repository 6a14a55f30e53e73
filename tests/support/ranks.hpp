// SPDX-License-Identifier: AGPL-3.0-only
// Runs a test's body as several ranks, each a process or a thread of its own, and collects what
// every one of them has to say. A rank that does not end is killed at the limit.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace spark_comm::test_support {

/// What became of each rank: empty text is success, otherwise its failures or how it ended.
using rank_outcomes = std::vector<std::string>;

inline constexpr std::chrono::seconds default_rank_limit{30};

/// Collects GoogleTest's failures as text.
class failure_collector final : public ::testing::EmptyTestEventListener {
 public:
  void OnTestPartResult(const ::testing::TestPartResult& part) override {
    if (part.failed()) {
      text_ += std::string{part.file_name() == nullptr ? "?" : part.file_name()} + ":" +
               std::to_string(part.line_number()) + ": " + part.message() + "\n";
    }
  }

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

namespace detail {

// The child's whole life: the body, then its failures into the pipe. Leaves without destructors and
// exit handlers, which belong to the parent.
[[noreturn]] inline void be_rank(int rank, int pipe_end, const std::function<void(int)>& body) {
  auto* collector = new failure_collector;
  ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(collector);
  std::string text;
  try {
    body(rank);
  } catch (const std::exception& failure) {
    text = std::string{"threw: "} + failure.what() + "\n";
  }
  text = collector->text() + text;
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t now = ::write(pipe_end, text.data() + written, text.size() - written);
    if (now <= 0) {
      break;
    }
    written += static_cast<std::size_t>(now);
  }
  ::_exit(0);
}

struct rank_process {
  pid_t pid = -1;
  int pipe_end = -1;
};

inline rank_process start_rank(int rank, const std::function<void(int)>& body) {
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) {
    std::perror("pipe");
    std::abort();
  }
  const pid_t pid = ::fork();
  if (pid < 0) {
    std::perror("fork");
    std::abort();
  }
  if (pid == 0) {
    static_cast<void>(::close(ends[0]));
    be_rank(rank, ends[1], body);
  }
  static_cast<void>(::close(ends[1]));
  return {pid, ends[0]};
}

inline std::string read_all(int pipe_end) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(pipe_end, buffer, sizeof buffer);
    if (got > 0) {
      text.append(buffer, static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return text;
    }
  }
}

// Waits for one process until the limit, kills it there, and says how it ended.
inline std::string finish_rank(const rank_process& process,
                               std::chrono::steady_clock::time_point limit) {
  int status = 0;
  bool is_late = false;
  while (::waitpid(process.pid, &status, WNOHANG) == 0) {
    if (!is_late && std::chrono::steady_clock::now() >= limit) {
      is_late = true;
      static_cast<void>(::kill(process.pid, SIGKILL));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  std::string text = read_all(process.pipe_end);
  static_cast<void>(::close(process.pipe_end));
  if (is_late) {
    text += "hung: killed at the limit\n";
  } else if (WIFSIGNALED(status)) {
    text += "ended by signal " + std::to_string(WTERMSIG(status)) + "\n";
  } else if (WEXITSTATUS(status) != 0) {
    text += "left with exit code " + std::to_string(WEXITSTATUS(status)) + "\n";
  }
  return text;
}

}  // namespace detail

/// Forks `count` ranks that run `body(rank)` with GoogleTest's checks, and waits for all of them.
/// The caller must not have threads: a child has only the one that forked.
inline rank_outcomes run_rank_processes(int count,
                                        const std::function<void(int)>& body,
                                        std::chrono::milliseconds limit = default_rank_limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::vector<detail::rank_process> processes;
  processes.reserve(static_cast<std::size_t>(count));
  std::fflush(nullptr);  // or the children print it again
  for (int rank = 0; rank < count; ++rank) {
    processes.push_back(detail::start_rank(rank, body));
  }
  rank_outcomes outcomes;
  for (const detail::rank_process& each : processes) {
    outcomes.push_back(detail::finish_rank(each, end));
  }
  return outcomes;
}

/// The same as threads of this process; their failed checks are the test's own. A hang ends the
/// process at the limit, since a thread cannot be killed.
inline void run_rank_threads(int count,
                             const std::function<void(int)>& body,
                             std::chrono::milliseconds limit = default_rank_limit) {
  std::vector<std::thread> threads;
  std::atomic<int> finished = 0;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      body(rank);
      ++finished;
    });
  }
  const auto end = std::chrono::steady_clock::now() + limit;
  while (finished < count) {
    if (std::chrono::steady_clock::now() >= end) {
      std::fprintf(stderr, "%d of %d rank threads hung\n", count - finished, count);
      std::abort();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  for (std::thread& each : threads) {
    each.join();
  }
}

/// Expects every rank to have succeeded, and prints the failures of those that have not.
inline void expect_all_succeeded(const rank_outcomes& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    EXPECT_EQ(outcomes[rank], "") << "rank " << rank;
  }
}

/// A value that forked ranks and their parent share.
template <typename T>
class shared_value {
 public:
  shared_value() {
    void* memory =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::bad_alloc{};
    }
    value_ = new (memory) T{};
  }

  shared_value(const shared_value&) = delete;
  shared_value& operator=(const shared_value&) = delete;
  shared_value(shared_value&&) = delete;
  shared_value& operator=(shared_value&&) = delete;

  ~shared_value() { static_cast<void>(::munmap(value_, sizeof(T))); }

  T& operator*() const noexcept { return *value_; }

  T* operator->() const noexcept { return value_; }

 private:
  T* value_ = nullptr;
};

}  // namespace spark_comm::test_support
