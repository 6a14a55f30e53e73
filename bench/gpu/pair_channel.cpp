// SPDX-License-Identifier: AGPL-3.0-only
#include "pair_channel.hpp"

#include <spark_comm/core/error.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <poll.h>
#include <span>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace spark_comm::bench {
namespace {

constexpr int limit_ms = 60000;

}  // namespace

pair_channel pair_channel::fork_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw_errno("socketpair", "cannot connect the two ranks", errno);
  }
  const pid_t child = fork();
  if (child < 0) {
    throw_errno("fork", "cannot start rank 1", errno);
  }
  const int rank = child == 0 ? 1 : 0;
  close(ends[rank == 0 ? 1 : 0]);
  return {rank, ends[rank == 0 ? 0 : 1], child};
}

void pair_channel::swap(std::span<const std::byte> mine, std::span<std::byte> theirs) const {
  // A few hundred bytes fit the socket's buffer, so sending first cannot block both.
  if (send(socket_, mine.data(), mine.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(mine.size())) {
    throw error{errc::peer_lost, "the other rank does not listen"};
  }
  std::size_t got = 0;
  while (got < theirs.size()) {
    pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, limit_ms) <= 0) {
      throw error{errc::timed_out, "the other rank says nothing"};
    }
    const ssize_t count = recv(socket_, theirs.data() + got, theirs.size() - got, 0);
    if (count <= 0) {
      throw error{errc::peer_lost, "the other rank is gone"};
    }
    got += static_cast<std::size_t>(count);
  }
}

void pair_channel::meet() const {
  const std::array<std::byte, 1> mine{};
  std::array<std::byte, 1> theirs{};
  swap(mine, theirs);
}

int pair_channel::join() const {
  int status = 0;
  if (rank_ == 0 && waitpid(child_, &status, 0) == child_) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  return 0;
}

}  // namespace spark_comm::bench
