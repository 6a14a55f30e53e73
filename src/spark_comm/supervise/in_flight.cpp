// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/prefetch.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/in_flight.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace spark_comm {
namespace {

bool has_ended(probe_state state) noexcept {
  return state == probe_state::done || state == probe_state::failed;
}

}  // namespace

in_flight_table::in_flight_table(std::size_t capacity)
    : mask_(std::bit_ceil(capacity) - 1), ring_(mask_ + 1) {
  watched_.reserve(4 * ring_.size());
  followed_.reserve(4 * ring_.size());
}

bool in_flight_table::push(const in_flight_operation& operation) noexcept {
  const std::uint64_t head = head_.load(std::memory_order_relaxed);  // only this thread writes it
  if (head - known_tail_ > mask_) {
    // Acquire: the watchdog has copied the slot before it is written again.
    known_tail_ = tail_.load(std::memory_order_acquire);
    if (head - known_tail_ > mask_) {
      return false;
    }
  }
  ring_[head & mask_] = operation;
  head_.store(head + 1, std::memory_order_release);  // the slot is whole before it is seen
  prefetch_for_writing(&ring_[(head + 1) & mask_]);
  return true;
}

bool in_flight_table::is_crowded() const noexcept {
  // Relaxed: a hint; a stale tail wakes the watchdog once too often.
  const std::uint64_t waiting =
      head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_relaxed);
  return waiting > mask_ / 2;
}

void in_flight_table::drain() {
  const std::uint64_t head = head_.load(std::memory_order_acquire);
  std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  while (tail != head && followed_.size() < followed_.capacity()) {
    const in_flight_operation& operation = ring_[tail & mask_];
    followed_.push_back(operation);
    watched_.push_back({.record = operation.record,
                        .submitted_at = operation.submitted_at,
                        .started_at = {},
                        .limits = operation.limits});
    ++tail;
  }
  tail_.store(tail, std::memory_order_release);
}

void in_flight_table::poll(time_point now,
                           const std::function<void(const in_flight_change&)>& on_change) {
  drain();
  asked_streams_.clear();
  for (std::size_t place = 0; place < followed_.size(); ++place) {
    const std::uint64_t stream = followed_[place].record.stream;
    if (std::ranges::find(asked_streams_, stream) == asked_streams_.end()) {
      asked_streams_.push_back(stream);
      poll_stream(place, now, on_change);
    }
  }
  compact();
}

// The operations of a stream end in order, so the first that has not ended is found by halving: a
// question costs the driver two microseconds, and hundreds may have ended since the last look.
void in_flight_table::poll_stream(std::size_t first,
                                  time_point now,
                                  const std::function<void(const in_flight_change&)>& on_change) {
  lane_.clear();
  for (std::size_t place = first; place < followed_.size(); ++place) {
    const operation_record& record = followed_[place].record;
    if (record.stream == followed_[first].record.stream) {
      lane_.push_back(place);
    }
  }
  std::size_t ended = 0;  // so many from the front have ended well
  std::size_t unknown_end = lane_.size();
  std::optional<probe_result> at_unknown_end;
  while (ended < unknown_end) {
    const std::size_t middle = ended + (unknown_end - ended) / 2;
    const probe_result result = ask(lane_[middle]);
    if (result.state == probe_state::done) {
      ended = middle + 1;
    } else {
      unknown_end = middle;
      at_unknown_end = result;
    }
  }
  for (std::size_t i = 0; i < ended; ++i) {
    note(lane_[i], {.state = probe_state::done}, now, on_change);
  }
  if (at_unknown_end) {
    const std::size_t place = lane_[unknown_end];
    note(place, *at_unknown_end, now, on_change);
    if (at_unknown_end->state == probe_state::pending && !watched_[place].started_at) {
      // Nobody was before it if nobody has ended since the last look, which it had not come to.
      const time_point at = ended == 0 ? watched_[place].submitted_at : now;
      watched_[place].started_at = at;
      on_change({.operation = followed_[place], .result = *at_unknown_end, .at = at});
    }
  }
}

probe_result in_flight_table::ask(std::size_t place) const noexcept {
  const completion_probe& probe = followed_[place].probe;
  return probe.poll(probe.context, probe.token);
}

void in_flight_table::note(std::size_t place,
                           const probe_result& result,
                           time_point now,
                           const std::function<void(const in_flight_change&)>& on_change) {
  if (has_ended(result.state)) {
    on_change({.operation = followed_[place], .result = result, .at = now});
    followed_[place].probe.poll = nullptr;  // the mark of an ended one, until `compact`
  }
}

void in_flight_table::compact() {
  std::size_t kept = 0;
  for (std::size_t place = 0; place < followed_.size(); ++place) {
    if (followed_[place].probe.poll != nullptr) {
      followed_[kept] = followed_[place];
      watched_[kept] = watched_[place];
      ++kept;
    }
  }
  followed_.resize(kept);
  watched_.resize(kept);
}

void in_flight_table::clear() noexcept {
  followed_.clear();
  watched_.clear();
  tail_.store(head_.load(std::memory_order_acquire), std::memory_order_release);
}

}  // namespace spark_comm
