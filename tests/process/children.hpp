// SPDX-License-Identifier: AGPL-3.0-only
// Ranks as processes. A child tells its result through a pipe, and dies with the test.
#pragma once

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace spark_comm::testing {

using namespace std::chrono_literals;

/// Writes one line to the parent.
using teller = std::function<void(const std::string& line)>;

/// A forked process that runs a function.
class child {
 public:
  explicit child(const std::function<void(const teller&)>& body) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      throw std::runtime_error{"no pipe"};
    }
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      run(body, ends[1]);
    }
    ::close(ends[1]);
    from_child_ = ends[0];
  }

  child(const child&) = delete;
  child& operator=(const child&) = delete;
  child(child&&) = delete;
  child& operator=(child&&) = delete;

  ~child() {
    signal(SIGKILL);
    wait();
    ::close(from_child_);
  }

  void signal(int number) const {
    if (pid_ > 0) {
      ::kill(pid_, number);
    }
  }

  /// The next line the child told; empty at its end, or when it says nothing for so long.
  [[nodiscard]] std::string line(std::chrono::milliseconds limit = 20s) {
    std::string out;
    const auto until = std::chrono::steady_clock::now() + limit;
    for (char c = 0;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      pollfd wanted{.fd = from_child_, .events = POLLIN, .revents = 0};
      if (left.count() <= 0 || ::poll(&wanted, 1, static_cast<int>(left.count())) <= 0 ||
          ::read(from_child_, &c, 1) != 1) {
        return {};
      }
      if (c == '\n') {
        return out;
      }
      out.push_back(c);
    }
  }

  /// Waits for its end; the status as of waitpid.
  int wait() {
    if (pid_ > 0) {
      while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
      }
      pid_ = -1;
    }
    return status_;
  }

  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  [[noreturn]] static void run(const std::function<void(const teller&)>& body, int to_parent) {
    const teller tell = [to_parent](const std::string& line) {
      const std::string text = line + "\n";
      if (::write(to_parent, text.data(), text.size()) < 0) {
        ::_exit(2);
      }
    };
    try {
      body(tell);
    } catch (const std::exception& failure) {
      tell(std::string{"threw "} + failure.what());
      ::_exit(1);
    }
    ::_exit(0);
  }

  pid_t pid_ = -1;
  int from_child_ = -1;
  int status_ = 0;
};

}  // namespace spark_comm::testing
