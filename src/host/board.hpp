// SPDX-License-Identifier: AGPL-3.0-only
// The steps of a collective on one rank: fill the own slot, see the others' slots, be done.
#pragma once

#include "communicator.hpp"
#include "stopping_wait.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace spark_comm::host::nccl {

/// Lives in a collective's frame. All ranks make the same steps in the same order.
class board {
 public:
  explicit board(communicator& comm) noexcept : comm_(comm) {}

  [[nodiscard]] int rank() const noexcept { return comm_.rank(); }

  [[nodiscard]] int ranks() const noexcept { return comm_.world_size(); }

  /// This step's number.
  [[nodiscard]] std::uint64_t step() const noexcept { return comm_.next_step; }

  /// The slot of a rank in a step.
  [[nodiscard]] std::byte* slot(int rank, std::uint64_t step) const noexcept {
    return comm_.staging(rank, step);
  }

  [[nodiscard]] std::byte* slot(int rank) const noexcept { return slot(rank, step()); }

  /// Waits until nobody reads what the own slot held before.
  [[nodiscard]] auto can_fill(std::uint64_t step) const {
    return unless_stopped(comm_, [&comm = comm_, step, rank = 0]() mutable {
      for (; rank < comm.world_size(); ++rank) {
        // Acquire: a peer's reads of the slot are over before it is overwritten.
        const std::uint64_t done = comm.board(rank).done.value.load(std::memory_order_acquire);
        if (done + slot_count <= step && rank != comm.rank()) {
          return false;
        }
      }
      return true;
    });
  }

  [[nodiscard]] auto can_fill() const { return can_fill(step()); }

  /// Waits until a rank's slot of a step is filled.
  [[nodiscard]] auto is_filled(int rank, std::uint64_t step) const {
    return unless_stopped(comm_, [&line = comm_.board(rank).posted, step] {
      // Acquire: what the peer wrote into the slot is visible.
      return line.value.load(std::memory_order_acquire) > step;
    });
  }

  [[nodiscard]] auto is_filled(int rank) const { return is_filled(rank, step()); }

  /// Waits until all ranks' slots of a step are filled.
  [[nodiscard]] auto are_filled(std::uint64_t step) const {
    return unless_stopped(comm_, [&comm = comm_, step, rank = 0]() mutable {
      for (; rank < comm.world_size(); ++rank) {
        // Acquire: as above.
        if (comm.board(rank).posted.value.load(std::memory_order_acquire) <= step) {
          return false;
        }
      }
      return true;
    });
  }

  [[nodiscard]] auto are_filled() const { return are_filled(step()); }

  /// Says that the own slot is filled (or that there is nothing to fill) up to and with `step`.
  void post(std::uint64_t step) const noexcept {
    // Release: the slot's bytes before the counter.
    comm_.board(rank()).posted.value.store(step + 1, std::memory_order_release);
  }

  void post() const noexcept { post(step()); }

  /// Says that all reads of the steps before `step` are over.
  void done_before(std::uint64_t step) const noexcept {
    // Release: the reads before the counter.
    comm_.board(rank()).done.value.store(step, std::memory_order_release);
  }

  /// Ends this step.
  void finish() const noexcept { done_before(++comm_.next_step); }

  /// Ends `steps` at once.
  void finish(std::uint64_t steps) const noexcept { done_before(comm_.next_step += steps); }

 private:
  communicator& comm_;
};

/// Copies unless there is nothing to copy, or both are one place.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes != 0 && to != from) {
    std::memcpy(to, from, bytes);
  }
}

/// `bytes` cut into pieces of at most `piece`.
struct pieces {
  std::size_t bytes;
  std::size_t piece;

  [[nodiscard]] constexpr std::size_t count() const noexcept { return (bytes + piece - 1) / piece; }

  [[nodiscard]] constexpr std::size_t begin(std::size_t i) const noexcept { return i * piece; }

  [[nodiscard]] constexpr std::size_t length(std::size_t i) const noexcept {
    return bytes - begin(i) < piece ? bytes - begin(i) : piece;
  }
};

/// Room of each rank in a slot that holds one part a rank; a whole number of lines, so of elements.
[[nodiscard]] constexpr std::size_t part_bytes(int ranks) noexcept {
  return slot_bytes / static_cast<std::size_t>(ranks) / line_bytes * line_bytes;
}

}  // namespace spark_comm::host::nccl
