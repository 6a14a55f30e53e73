// SPDX-License-Identifier: AGPL-3.0-only
// The operations that have been launched and not yet been seen to end. Filled on the way of every
// operation, emptied by the watchdog.
#pragma once

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace spark_comm {

/// How far an operation is.
enum class probe_state : std::uint8_t {
  pending,  ///< Not seen to have ended.
  done,     ///< Ended well. Not asked again.
  failed,   ///< Ended badly. Not asked again.
};

/// Answer of a probe. Plain numbers, because nothing may throw or allocate there.
struct probe_result {
  probe_state state = probe_state::pending;
  errc code = errc::internal;  ///< For `failed`.
  native_domain domain = native_domain::none;
  std::int64_t native_number = 0;
};

/// Asks the device how far an operation is, without blocking. Called on the watchdog's thread only.
struct completion_probe {
  using poll_function = probe_result (*)(void* context, std::uint64_t token) noexcept;

  poll_function poll = nullptr;
  void* context = nullptr;
  std::uint64_t token = 0;
};

/// What the watchdog needs to follow an operation.
struct in_flight_operation {
  operation_record record;
  std::uint64_t flight_index = 0;  ///< Its place in the flight record.
  time_point submitted_at;
  operation_limits limits;
  completion_probe probe;
};

/// What a round of probing saw.
struct in_flight_change {
  in_flight_operation operation;
  probe_result result;  ///< `pending`: the operation has started.
  time_point at;        ///< When it started or was seen to have ended.
};

/// A ring from the submitting thread to the watchdog, and the watchdog's list behind it. Both
/// bounded.
// The two ends keep off each other's cache lines.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
class SPARK_COMM_API in_flight_table {
 public:
  static constexpr std::size_t default_capacity = 512;

  /// `capacity` is rounded up to a power of two; the list behind the ring holds four times as many.
  explicit in_flight_table(std::size_t capacity = default_capacity);

  in_flight_table(const in_flight_table&) = delete;
  in_flight_table& operator=(const in_flight_table&) = delete;
  in_flight_table(in_flight_table&&) = delete;
  in_flight_table& operator=(in_flight_table&&) = delete;

  ~in_flight_table() = default;

  /// False when there is no room: the operation is not followed by itself; older ones, which are,
  /// run out of time first. Who: the submitting thread.
  /// Cost: a copy and one store; no lock, no allocation.
  bool push(const in_flight_operation& operation) noexcept;

  /// More than half of the ring waits for the watchdog: time to wake it. Who: the submitting
  /// thread.
  [[nodiscard]] bool is_crowded() const noexcept;

  /// Tells `on_change` about starts and ends. Of the operations of one stream only as many are
  /// asked as it takes to find the first that has not ended: they end in order. That one has
  /// started: once it was submitted, or once its predecessor was seen to have ended; what else the
  /// stream does before it counts as its own time. Who: the watchdog.
  void poll(time_point now, const std::function<void(const in_flight_change&)>& on_change);

  /// Those that have not ended, in the order of submission. Valid until the next `poll`. Who: the
  /// watchdog.
  [[nodiscard]] std::span<const watched_operation> pending() const noexcept { return watched_; }

  /// Where a pending operation is in the flight record; `place` counts within `pending`.
  [[nodiscard]] std::uint64_t flight_index_of(std::size_t place) const noexcept {
    return followed_[place].flight_index;
  }

  /// Forgets everything. Who: the watchdog, or anybody once both threads are done.
  void clear() noexcept;

 private:
  void drain();
  void poll_stream(std::size_t first,
                   time_point now,
                   const std::function<void(const in_flight_change&)>& on_change);
  [[nodiscard]] probe_result ask(std::size_t place) const noexcept;
  void note(std::size_t place,
            const probe_result& result,
            time_point now,
            const std::function<void(const in_flight_change&)>& on_change);
  void compact();

  std::size_t mask_;
  std::vector<in_flight_operation> ring_;
  alignas(64) std::atomic<std::uint64_t> head_{0};  // next to write; the submitting thread's
  std::uint64_t known_tail_ = 0;                    // the submitting thread's copy of `tail_`
  alignas(64) std::atomic<std::uint64_t> tail_{0};  // next to read; the watchdog's
  // Parallel lists, the watchdog's: what is judged, and the rest.
  std::vector<watched_operation> watched_;
  std::vector<in_flight_operation> followed_;
  std::vector<std::uint64_t> asked_streams_;
  std::vector<std::size_t> lane_;  // the places of one stream's operations
};

}  // namespace spark_comm
