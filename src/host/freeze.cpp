// SPDX-License-Identifier: AGPL-3.0-only
#include "freeze.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <sys/wait.h>
#include <unistd.h>

namespace spark_comm::host {
namespace {

// The life of the process that stops the other one and lets it go again. Only calls that are safe
// after a fork among threads.
[[noreturn]] void freeze_and_thaw(pid_t frozen,
                                  std::chrono::nanoseconds time,
                                  int thawed) noexcept {
  // Nothing of the frozen process may stay open here: should it be killed, its peers must see that.
  if (::dup2(thawed, 0) < 0 || ::close_range(1, ~0U, 0) != 0) {
    ::_exit(1);
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  timespec left{.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
  static_cast<void>(::kill(frozen, SIGSTOP));
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  static_cast<void>(::kill(frozen, SIGCONT));
  ::_exit(0);
}

}  // namespace

bool freeze_process(std::chrono::nanoseconds time) noexcept {
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) {
    return false;
  }
  const pid_t frozen = ::getpid();
  const pid_t between = ::_Fork();
  if (between == 0) {
    // A grandchild, so that the program gets no child that it did not make.
    if (::_Fork() == 0) {
      freeze_and_thaw(frozen, time, ends[1]);
    }
    ::_exit(0);
  }
  static_cast<void>(::close(ends[1]));
  if (between > 0) {
    static_cast<void>(::waitpid(between, nullptr, 0));
    char unused = 0;
    while (::read(ends[0], &unused, 1) < 0 && errno == EINTR) {
    }
  }
  static_cast<void>(::close(ends[0]));
  return between > 0;
}

}  // namespace spark_comm::host
