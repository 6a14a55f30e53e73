// SPDX-License-Identifier: AGPL-3.0-only
// How the watchdog learns, without a poll on the way of an operation, that it has ended: an event
// behind each launch, the one used last first, because recording a cold one costs three times as
// much.
#pragma once

#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/supervise/in_flight.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace spark_comm::detail {

/// Marks on streams. The marks of a stream are counted, and are reached in order: one number says
/// which are, whoever has found it out.
///
/// Threads: one issues (`fill`, `mark`, `poll_all`); any may ask a probe, and may tell by
/// `note_drained` what it has seen.
class completion_events {
 public:
  /// So many streams can have marks that have not been reached, at a time.
  static constexpr std::size_t most_streams = 64;

  completion_events(cuda::device device, std::size_t capacity);

  /// Makes all events now: making one costs more than recording many. Who: before the first `mark`.
  void fill();

  /// Marks the point after all work enqueued on `s` so far; none when all events are in use.
  /// Throws: device_failed.
  [[nodiscard]] std::optional<std::uint64_t> mark(cuda::stream_ref s);

  /// The probe that asks for `mark`.
  [[nodiscard]] completion_probe probe(std::uint64_t mark) noexcept;

  /// How many marks `s` has had. Ask before looking whether `s` is empty, and then tell
  /// `note_drained`.
  [[nodiscard]] std::uint64_t marks_on(cuda::stream_ref s) noexcept;

  /// The first `marks` marks on `s` have been reached.
  void note_drained(cuda::stream_ref s, std::uint64_t marks) noexcept;

  /// Whether everything that was marked is over.
  /// Throws: device_failed.
  [[nodiscard]] progress poll_all();

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  // What follows is the issuing thread's, but for the events, which others query.
  struct slot {
    cuda::event event;
    std::uint64_t round = 0;    // which of its lane's marks it stands for
    std::uint32_t next = none;  // the next later one of the lane, or the next spare one
  };

  struct lane {
    std::atomic<cuda::abi::stream> stream{nullptr};
    std::atomic<std::uint64_t> marked{0};
    std::atomic<std::uint64_t> reached{0};  // by whoever finds it out
    std::uint32_t oldest = none;            // the slots in use: the issuing thread's
    std::uint32_t newest = none;

    [[nodiscard]] bool is_idle() const noexcept;
    void raise(std::uint64_t round) noexcept;
  };

  static probe_result poll(void* self, std::uint64_t token) noexcept;

  [[nodiscard]] lane* find(cuda::stream_ref s) noexcept;
  [[nodiscard]] lane* find_or_make(cuda::stream_ref s) noexcept;
  void reclaim(lane& from) noexcept;
  [[nodiscard]] std::uint32_t take() noexcept;
  void put_back(std::uint32_t index) noexcept;

  cuda::device device_;
  std::size_t capacity_;
  std::vector<slot> slots_;
  std::uint32_t spare_ = none;  // the last one put back
  std::array<lane, most_streams> lanes_;
  std::atomic<std::size_t> lanes_used_{0};
};

}  // namespace spark_comm::detail
