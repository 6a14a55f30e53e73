// SPDX-License-Identifier: AGPL-3.0-only
// The twin of device/flags.cuh: rounds, flags, bounded spins and poison, with atomics on memory
// that ranks share.
#pragma once

#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/peer_segment.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace spark_comm::kernels::host {

[[nodiscard]] inline segment_header& header_of(void* segment) noexcept {
  return *static_cast<segment_header*>(segment);
}

[[nodiscard]] inline std::byte* bytes_of(void* segment) noexcept {
  return static_cast<std::byte*>(segment);
}

/// The first failure of a segment is reported.
void report_failure(const detail::peer_exchange& peers,
                    exchange_failure failure,
                    std::uint32_t block,
                    int peer,
                    std::uint64_t round) noexcept;

/// Whether abort was asked for.
[[nodiscard]] bool is_aborted(const detail::peer_exchange& peers) noexcept;

/// Who waits for whom, for the report.
struct wait_subject {
  std::uint32_t block = 0;
  int peer = 0;
  std::uint64_t round = 0;
};

/// Spins until `reached()`; false when the limit passed or abort was set. Yields its processor, so
/// that ranks which share one get on.
template <typename Reached>
bool spin_until(const detail::peer_exchange& peers, const wait_subject& who, Reached reached) {
  constexpr int spins_between_checks = 256;
  using clock = std::chrono::steady_clock;
  const auto limit = std::chrono::nanoseconds{peers.wait_limit_ns};
  for (int i = 0; i < spins_between_checks; ++i) {
    if (reached()) {
      return true;
    }
  }
  const clock::time_point started = clock::now();
  while (!reached()) {
    if (is_aborted(peers)) {
      report_failure(peers, exchange_failure::aborted, who.block, who.peer, who.round);
      return false;
    }
    if (clock::now() - started > limit) {
      report_failure(peers, exchange_failure::timed_out, who.block, who.peer, who.round);
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

/// The round that this launch is; 0 when the segment is poisoned.
[[nodiscard]] std::uint64_t begin_round(const detail::peer_exchange& peers,
                                        const std::uint64_t* finished) noexcept;

/// Counts the round in every counter.
void end_round(std::uint64_t* finished, std::uint64_t round) noexcept;

/// Publishes what was written before for all blocks, and waits for all peers to do the same.
[[nodiscard]] bool meet_peers(const detail::peer_exchange& peers,
                              int stage,
                              std::uint64_t round,
                              std::uint32_t blocks) noexcept;

}  // namespace spark_comm::kernels::host
