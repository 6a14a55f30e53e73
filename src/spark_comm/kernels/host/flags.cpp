// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/host/flags.hpp>
#include <spark_comm/kernels/peer_segment.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace spark_comm::kernels::host {

void report_failure(const detail::peer_exchange& peers,
                    exchange_failure failure,
                    std::uint32_t block,
                    int peer,
                    std::uint64_t round) noexcept {
  std::uint32_t healthy = 0;
  // Relaxed: only the owner's kernels look at it, in stream order.
  const std::atomic_ref<std::uint32_t> poisoned{header_of(peers.segments[peers.rank]).poisoned};
  if (!poisoned.compare_exchange_strong(
          healthy, static_cast<std::uint32_t>(failure), std::memory_order_relaxed)) {
    return;
  }
  exchange_status& status = *peers.status;
  status.block = block;
  status.peer = static_cast<std::uint32_t>(peer);
  status.round = round;
  // Release: whoever sees the failure sees the rest.
  std::atomic_ref<exchange_failure>{status.failure}.store(failure, std::memory_order_release);
}

bool is_aborted(const detail::peer_exchange& peers) noexcept {
  // atomic_ref takes no const object before C++26; nothing is written. Relaxed: the word says stop,
  // and publishes nothing.
  auto* const word = const_cast<std::uint32_t*>(peers.abort_word);
  return std::atomic_ref<std::uint32_t>{*word}.load(std::memory_order_relaxed) != 0;
}

std::uint64_t begin_round(const detail::peer_exchange& peers,
                          const std::uint64_t* finished) noexcept {
  const std::atomic_ref<std::uint32_t> poisoned{header_of(peers.segments[peers.rank]).poisoned};
  return poisoned.load(std::memory_order_relaxed) != 0 ? 0 : finished[0] + 1;
}

void end_round(std::uint64_t* finished, std::uint64_t round) noexcept {
  std::fill_n(finished, max_exchange_blocks, round);
}

bool meet_peers(const detail::peer_exchange& peers,
                int stage,
                std::uint64_t round,
                std::uint32_t blocks) noexcept {
  for (int peer = 0; peer < peers.limits.world; ++peer) {
    for (std::uint32_t block = 0; peer != peers.rank && block < blocks; ++block) {
      std::uint64_t& flag = header_of(peers.segments[peer]).flags[stage][block][peers.rank];
      // Release: the peer that sees the flag sees everything staged before it.
      std::atomic_ref<std::uint64_t>{flag}.store(round, std::memory_order_release);
    }
  }
  for (int peer = 0; peer < peers.limits.world; ++peer) {
    for (std::uint32_t block = 0; peer != peers.rank && block < blocks; ++block) {
      const std::atomic_ref<std::uint64_t> flag{
          header_of(peers.segments[peers.rank]).flags[stage][block][peer]};
      const auto is_there = [&] { return flag.load(std::memory_order_acquire) >= round; };
      if (!spin_until(peers, {.block = block, .peer = peer, .round = round}, is_there)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace spark_comm::kernels::host
