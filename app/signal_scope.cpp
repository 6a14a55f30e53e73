// SPDX-License-Identifier: AGPL-3.0-only
#include "signal_scope.hpp"

#include "descriptor.hpp"
#include "exit_code.hpp"

#include <cerrno>
#include <csignal>
#include <string>
#include <sys/signalfd.h>
#include <system_error>
#include <unistd.h>

namespace spark_comm::app {

signal_scope::signal_scope() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    sigaddset(&set, number);
  }
  requests_ = descriptor{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!requests_) {
    throw failure(exit_code::failed, "signalfd: " + std::generic_category().message(errno));
  }
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

signal_scope::~signal_scope() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int signal_scope::take() noexcept {
  signalfd_siginfo info{};
  return ::read(requests_.get(), &info, sizeof(info)) == sizeof(info)
             ? static_cast<int>(info.ssi_signo)
             : 0;
}

}  // namespace spark_comm::app
