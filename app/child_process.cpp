// SPDX-License-Identifier: AGPL-3.0-only
#include "child_process.hpp"

#include "descriptor.hpp"
#include "exit_code.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace spark_comm::app {
namespace {

struct pipe_ends {
  descriptor read;
  descriptor write;
};

failure system_failure(std::string_view what) {
  const int number = errno;
  return {exit_code::failed, fmt::format("{}: {}", what, std::generic_category().message(number))};
}

/// Both ends are above the descriptors that the child rearranges, whatever we were started with.
pipe_ends make_pipe() {
  std::array<int, 2> raw{};
  if (::pipe2(raw.data(), O_CLOEXEC) != 0) {
    throw system_failure("pipe2");
  }
  const descriptor low_read{raw[0]};
  const descriptor low_write{raw[1]};
  constexpr int above = 10;
  pipe_ends ends{.read = descriptor{::fcntl(low_read.get(), F_DUPFD_CLOEXEC, above)},
                 .write = descriptor{::fcntl(low_write.get(), F_DUPFD_CLOEXEC, above)}};
  if (!ends.read || !ends.write) {
    throw system_failure("fcntl(F_DUPFD_CLOEXEC)");
  }
  if (::fcntl(ends.read.get(), F_SETFL, O_NONBLOCK) != 0) {
    throw system_failure("fcntl(F_SETFL)");
  }
  return ends;
}

/// By number: glibc 2.36 declares pidfd_open without C linkage, so C++ cannot link it.
descriptor open_pidfd(pid_t pid) {
  return descriptor{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
}

/// Our environment with the command's variables in place of ours of the same name.
std::vector<std::string> environment_of(const child_command& command) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    bool is_replaced = false;
    for (const auto& [key, value] : command.environment) {
      is_replaced = is_replaced || key == name;
    }
    if (!is_replaced) {
      variables.emplace_back(text);
    }
  }
  for (const auto& [key, value] : command.environment) {
    variables.push_back(key + "=" + value);
  }
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

/// Everything that the child needs, made before the fork: after it only async-signal-safe calls.
struct child_plan {
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  int output = -1;
  int error = -1;
  int report = -1;
  int exec_status = -1;
  pid_t parent = -1;
};

[[noreturn]] void become(const child_plan& plan) noexcept {
  sigset_t none;
  sigemptyset(&none);
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const bool ready = ::setpgid(0, 0) == 0 && ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
                     // The parent may have died before the line above; then nobody would kill us.
                     ::getppid() == plan.parent && null >= 0 && ::dup2(null, STDIN_FILENO) >= 0 &&
                     ::dup2(plan.output, STDOUT_FILENO) >= 0 &&
                     ::dup2(plan.error, STDERR_FILENO) >= 0 &&
                     (plan.report < 0 || ::dup2(plan.report, report_descriptor) >= 0) &&
                     ::sigprocmask(SIG_SETMASK, &none, nullptr) == 0;
  if (ready) {
    ::execvpe(plan.arguments[0], plan.arguments, plan.environment);
  }
  const int number = errno;
  // Nobody is left to tell when this fails; the exit code remains.
  [[maybe_unused]] const ssize_t written = ::write(plan.exec_status, &number, sizeof(number));
  ::_exit(127);
}

/// Waits until the child runs its program (the pipe closes) or says why it cannot.
void require_started(const descriptor& exec_status, const std::string& program) {
  if (::fcntl(exec_status.get(), F_SETFL, 0) != 0) {
    throw system_failure("fcntl(F_SETFL)");
  }
  int number = 0;
  ssize_t bytes = -1;
  do {
    bytes = ::read(exec_status.get(), &number, sizeof(number));
  } while (bytes < 0 && errno == EINTR);
  if (bytes == sizeof(number)) {
    throw failure(
        exit_code::not_available,
        fmt::format("cannot start {}: {}", program, std::generic_category().message(number)));
  }
}

}  // namespace

std::string to_text(const child_end& end) {
  if (end.signal == 0) {
    return fmt::format("ended with exit code {}", end.status);
  }
  const char* const name = ::sigabbrev_np(end.signal);
  return name == nullptr ? fmt::format("was killed by signal {}", end.signal)
                         : fmt::format("was killed by signal {} (SIG{})", end.signal, name);
}

child_process child_process::start(const child_command& command) {
  if (command.arguments.empty()) {
    throw usage_failure("no program to start");
  }
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = environment_of(command);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  pipe_ends output = make_pipe();
  pipe_ends error = make_pipe();
  pipe_ends report = command.with_report ? make_pipe() : pipe_ends{};
  pipe_ends exec_status = make_pipe();
  const child_plan plan{.arguments = argument_pointers.data(),
                        .environment = environment_pointers.data(),
                        .output = output.write.get(),
                        .error = error.write.get(),
                        .report = report.write.get(),
                        .exec_status = exec_status.write.get(),
                        .parent = ::getpid()};

  child_process child;
  child.pid_ = ::fork();
  if (child.pid_ < 0) {
    throw system_failure("fork");
  }
  if (child.pid_ == 0) {
    become(plan);
  }
  exec_status.write.reset();
  require_started(exec_status.read, command.arguments.front());
  child.ended_ = open_pidfd(child.pid_);
  if (!child.ended_) {
    throw system_failure("pidfd_open");
  }
  child.output_ = std::move(output.read);
  child.error_ = std::move(error.read);
  child.report_ = std::move(report.read);
  return child;
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      end_(std::exchange(other.end_, std::nullopt)),
      ended_(std::move(other.ended_)),
      output_(std::move(other.output_)),
      error_(std::move(other.error_)),
      report_(std::move(other.report_)) {}

child_process::~child_process() {
  if (pid_ > 0 && !end_) {
    send_signal(SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

std::optional<child_end> child_process::poll_end() {
  if (!end_) {
    int status = 0;
    const pid_t waited = ::waitpid(pid_, &status, WNOHANG);
    if (waited == pid_) {
      end_ = WIFSIGNALED(status) ? child_end{.status = 0, .signal = WTERMSIG(status)}
                                 : child_end{.status = WEXITSTATUS(status), .signal = 0};
    } else if (waited < 0 && errno != EINTR) {
      throw system_failure("waitpid");
    }
  }
  return end_;
}

void child_process::send_signal(int number) noexcept {
  if (pid_ > 0 && !end_) {
    // Not yet waited for, so the number still is this child's.
    ::kill(-pid_, number);
  }
}

}  // namespace spark_comm::app
