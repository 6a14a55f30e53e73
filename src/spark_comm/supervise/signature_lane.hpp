// SPDX-License-Identifier: AGPL-3.0-only
// The last operations of one lane, with the signature after each, for those who compare.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/signature.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace spark_comm {

/// A ring. Ordinals count from 1 and never repeat.
///
/// Threads: one appends, one completes, any reads; nobody waits.
class SPARK_COMM_API signature_lane {
 public:
  /// `capacity` is rounded up to a power of two.
  explicit signature_lane(std::size_t capacity);

  /// Gives the operation the next ordinal, and returns the signature after it.
  std::uint64_t append(operation_record& record) noexcept;

  /// How many there were.
  [[nodiscard]] std::uint64_t submitted() const noexcept {
    // Acquire: entries up to here can be read.
    return submitted_.load(std::memory_order_acquire);
  }

  /// Notes that the operation was seen to end. Who: the watchdog.
  void complete(std::uint64_t ordinal) noexcept {
    // Relaxed: a number to show, orders nothing; one thread writes it.
    if (ordinal > completed_.load(std::memory_order_relaxed)) {
      completed_.store(ordinal, std::memory_order_relaxed);
    }
  }

  /// The highest ordinal that was seen to end.
  [[nodiscard]] std::uint64_t completed() const noexcept {
    return completed_.load(std::memory_order_relaxed);
  }

  /// None when the ring no longer, or not yet, holds it.
  [[nodiscard]] std::optional<operation_record> find(std::uint64_t ordinal) const noexcept;

  /// The signature after the first `ordinal` operations.
  [[nodiscard]] std::optional<std::uint64_t> signature_after(std::uint64_t ordinal) const noexcept;

 private:
  static constexpr std::size_t entry_words = 6;

  using entry = std::array<std::atomic<std::uint64_t>, entry_words>;
  using snapshot = std::array<std::uint64_t, entry_words>;

  [[nodiscard]] std::optional<snapshot> read(std::uint64_t ordinal) const noexcept;

  std::size_t mask_;
  std::unique_ptr<entry[]> entries_;  // NOLINT(modernize-avoid-c-arrays): atomics cannot be moved
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> completed_{0};
  std::uint64_t signature_ = empty_signature;  // the appending thread's
};

}  // namespace spark_comm
