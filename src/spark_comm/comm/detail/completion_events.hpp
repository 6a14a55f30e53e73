// SPDX-License-Identifier: AGPL-3.0-only
// How the watchdog learns, without a poll on the way of an operation, that it has started and
// ended: a pair of events from a pool, recorded around each launch.
#pragma once

#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/supervise/in_flight.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace spark_comm::detail {

/// A pool of event pairs.
///
/// Threads: one issues (`begin`, `end`, `put_back`), one other probes and releases.
class completion_events {
 public:
  completion_events(cuda::device device, std::size_t capacity);

  /// Makes all events now: making one costs more than recording many. Who: before the first
  /// `begin`.
  void fill();

  /// A pair whose first event is recorded on `s`; none when all are in use.
  /// Throws: device_failed.
  [[nodiscard]] std::optional<std::uint64_t> begin(cuda::stream_ref s);

  /// Records the pair's second event.
  void end(std::uint64_t pair, cuda::stream_ref s);

  /// Takes a pair back that was never followed.
  void put_back(std::uint64_t pair) noexcept;

  /// The probe that asks for `pair`, and gives it back to the pool when released.
  [[nodiscard]] completion_probe probe(std::uint64_t pair) noexcept;

  /// Whether everything that has begun is over. Who: the issuing thread.
  /// Throws: device_failed.
  [[nodiscard]] progress poll_all() const;

 private:
  struct pair {
    cuda::event start;
    cuda::event end;
  };

  static probe_result poll(void* self, std::uint64_t index) noexcept;
  static void release(void* self, std::uint64_t index) noexcept;

  [[nodiscard]] std::optional<std::uint64_t> take();

  [[nodiscard]] const pair& at(std::uint64_t index) const noexcept { return *pairs_[index]; }

  cuda::device device_;
  std::size_t capacity_;
  std::vector<std::optional<pair>> pairs_;  // full size from the start: the prober reads meanwhile
  std::size_t created_ = 0;
  std::vector<std::uint64_t> spare_;  // put back by the issuing thread

  // Pairs that the prober let go of: a ring that it writes and the issuing thread reads.
  std::vector<std::uint64_t> released_;
  std::uint64_t reused_ = 0;                // the issuing thread's place in it
  std::atomic<std::uint64_t> returned_{0};  // written by the prober: its place in the ring
};

}  // namespace spark_comm::detail
