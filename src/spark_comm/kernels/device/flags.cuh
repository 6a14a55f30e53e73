// SPDX-License-Identifier: AGPL-3.0-only
// How a block tells its twins on other devices that data is there, and waits for theirs: rounds,
// flags, bounded spins, poison.
#pragma once

#include <spark_comm/kernels/detail/parameters.hpp>

#include <cstddef>
#include <cstdint>

namespace spark_comm::kernels::device {

// System scope throughout: the other side may be another device, process or the host.

__device__ inline std::uint64_t load_acquire(const std::uint64_t* from) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}

__device__ inline void store_release(std::uint64_t* to, std::uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

__device__ inline std::uint32_t load_relaxed(const std::uint32_t* from) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

/// 16 bytes of a peer's memory. Relaxed, not weak: never served from this SM's first-level cache.
__device__ inline uint4 load_peer(const void* from) {
  uint4 value;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from)
               : "memory");
  return value;
}

/// Nanoseconds of the device's clock.
__device__ inline std::uint64_t clock_ns() {
  std::uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

__device__ inline segment_header& header_of(void* segment) {
  return *static_cast<segment_header*>(segment);
}

__device__ inline std::byte* bytes_of(void* segment) {
  return static_cast<std::byte*>(segment);
}

/// Called by one thread: the first failure of a segment is reported to the host.
__device__ inline void report_failure(const detail::peer_exchange& peers,
                                      exchange_failure failure,
                                      int peer,
                                      std::uint64_t round) {
  std::uint32_t* const poisoned = &header_of(peers.segments[peers.rank]).poisoned;
  if (atomicCAS(poisoned, 0U, static_cast<std::uint32_t>(failure)) != 0) {
    return;
  }
  volatile exchange_status* const status = peers.status;
  status->block = blockIdx.x;
  status->peer = static_cast<std::uint32_t>(peer);
  status->round = round;
  __threadfence_system();  // the host reads `failure` with acquire and then the rest
  status->failure = failure;
}

/// Spins until `reached()`; false when the limit passed, abort was set, or another block failed.
/// The host's word is across the bus, so it is asked rarely.
template <typename Reached>
__device__ bool spin_until(const detail::peer_exchange& peers,
                           int peer,
                           std::uint64_t round,
                           Reached reached) {
  constexpr int spins_between_checks = 256;
  const std::uint32_t* const poisoned = &header_of(peers.segments[peers.rank]).poisoned;
  std::uint64_t started = 0;
  while (true) {
    for (int i = 0; i < spins_between_checks; ++i) {
      if (reached()) {
        return true;
      }
    }
    const std::uint64_t now = clock_ns();
    started = started == 0 ? now : started;
    if (load_relaxed(peers.abort_word) != 0) {
      report_failure(peers, exchange_failure::aborted, peer, round);
      return false;
    }
    if (now - started > peers.wait_limit_ns) {
      report_failure(peers, exchange_failure::timed_out, peer, round);
      return false;
    }
    if (load_relaxed(poisoned) != 0) {
      return false;
    }
  }
}

/// The round that this launch is; 0 when the segment is poisoned. The same for the whole block.
/// `finished` is the owner's counters of the protocol.
__device__ inline std::uint64_t begin_round(const detail::peer_exchange& peers,
                                            const std::uint64_t* finished) {
  // Earlier launches wrote both, so plain loads see them; poison set by a neighbour block of this
  // launch may be seen by some threads only, hence one thread's view for all.
  const std::uint64_t round = finished[blockIdx.x] + 1;
  const std::uint32_t poisoned =
      threadIdx.x == 0 ? load_relaxed(&header_of(peers.segments[peers.rank]).poisoned) : 0U;
  return __syncthreads_or(static_cast<int>(poisoned)) != 0 ? 0 : round;
}

/// Counts the round. Every launch advances all counters, whatever its grid: block b those that are
/// congruent to it. Called after a barrier that follows the block's last read of its counter.
__device__ inline void end_round(std::uint64_t* finished, std::uint64_t round) {
  const std::uint32_t step = blockDim.x * gridDim.x;
  for (std::uint32_t counter = blockIdx.x + threadIdx.x * gridDim.x; counter < max_exchange_blocks;
       counter += step) {
    finished[counter] = round;
  }
}

/// Publishes what the block wrote before, and waits for its twins of all peers to do the same.
/// False, for the whole block, when a wait failed.
///
/// Sync: the barrier orders all stores of the block before thread r's release store into peer r's
///   segment (cumulative at system scope); thread r's acquire load of peer r's flag, then the
///   second barrier, order the peer's stores before all loads of the block. The spin is bounded.
__device__ inline bool meet_peers(const detail::peer_exchange& peers,
                                  int stage,
                                  std::uint64_t round) {
  __syncthreads();
  bool is_met = true;
  const int peer = static_cast<int>(threadIdx.x);
  if (peer < peers.limits.world && peer != peers.rank) {
    store_release(&header_of(peers.segments[peer]).flags[stage][blockIdx.x][peers.rank], round);
    const std::uint64_t* const flag =
        &header_of(peers.segments[peers.rank]).flags[stage][blockIdx.x][peer];
    is_met = spin_until(peers, peer, round, [&] { return load_acquire(flag) >= round; });
  }
  return __syncthreads_and(static_cast<int>(is_met)) != 0;
}

}  // namespace spark_comm::kernels::device
