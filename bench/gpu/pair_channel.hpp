// SPDX-License-Identifier: AGPL-3.0-only
// Two processes that meet and swap a few bytes; made before either touches the driver.
#pragma once

#include <cstddef>
#include <span>

namespace spark_comm::bench {

/// One end of a pair of connected processes. Every wait ends after 60 s. Closed with the process.
class pair_channel {
 public:
  /// Forks. The parent is rank 0, the child rank 1. Throws: system_failed.
  [[nodiscard]] static pair_channel fork_pair();

  [[nodiscard]] int rank() const noexcept { return rank_; }

  /// Sends `mine` and receives as many bytes into `theirs`. Throws: peer_lost, timed_out.
  void swap(std::span<const std::byte> mine, std::span<std::byte> theirs) const;

  /// Returns when both have called it.
  void meet() const;

  /// Parent: waits for the child and returns its exit status. Child: returns 0.
  [[nodiscard]] int join() const;

 private:
  pair_channel(int rank, int socket, int child) noexcept
      : rank_(rank), socket_(socket), child_(child) {}

  int rank_;
  int socket_;
  int child_;
};

}  // namespace spark_comm::bench
