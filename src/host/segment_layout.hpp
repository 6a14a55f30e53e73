// SPDX-License-Identifier: AGPL-3.0-only
// What lies where in a communicator's shared memory. Every counter has one writer, only grows, and
// has 128 bytes to itself: two cache lines, because the prefetcher of many CPUs pulls lines in
// pairs.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace spark_comm::host::nccl {

inline constexpr int most_ranks = 64;
inline constexpr std::size_t line_bytes = 128;

/// Staging and channels are rings of `slot_count` slots.
inline constexpr std::size_t slot_bytes = std::size_t{128} * 1024;
inline constexpr std::uint64_t slot_count = 8;
inline constexpr std::size_t channel_slot_bytes = std::size_t{64} * 1024;
inline constexpr std::uint64_t channel_slot_count = 8;

/// Life of a bootstrap. As wide as a futex word.
// NOLINTNEXTLINE(performance-enum-size)
enum class bootstrap_state : std::uint32_t {
  open = 0,      ///< Ranks may arrive.
  complete = 1,  ///< All have arrived.
  closed = 2,    ///< Ranks disagreed; nobody is told.
};

/// A counter with one writer.
struct alignas(line_bytes) counter_line {
  std::atomic<std::uint64_t> value;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");

/// What a rank says of itself when it arrives.
struct alignas(line_bytes) arrival_line {
  std::atomic<std::uint32_t> is_claimed;
  std::uint32_t version;
  std::atomic<std::int32_t> pid;
  std::int32_t device;
};

/// Start of the file. A fresh file is all zero, which is every field's initial value.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the padding keeps lines apart
struct segment_header {
  std::uint64_t token;
  alignas(line_bytes) std::atomic<std::int32_t> world_size;
  alignas(line_bytes) std::atomic<bootstrap_state> state;  // also a futex
  alignas(line_bytes) std::atomic<std::uint32_t> arrived;
  std::array<arrival_line, most_ranks> ranks;
};

/// Room for a rank's contribution to an exchange of small messages between all ranks.
inline constexpr std::size_t exchange_bytes = 256;

struct alignas(line_bytes) exchange_lines {
  counter_line offered;  ///< Rounds whose payload is there.
  counter_line taken;    ///< Rounds in which this rank has read everybody's payload.
  std::array<std::byte, exchange_bytes> payload;
};

/// Where a rank tells some of the others about a new segment: a payload under a key that they
/// expect.
struct alignas(line_bytes) announcement_line {
  std::atomic<std::uint64_t> key;
  std::array<std::byte, exchange_bytes> payload;
};

/// A rank's progress through the steps of collectives.
struct board_lines {
  counter_line posted;  ///< Steps whose slot is filled.
  counter_line done;    ///< Steps in which this rank has read all that it wants to read.
};

/// An ordered pair's progress through its channel.
struct channel_lines {
  counter_line sent;
  counter_line received;
};

/// Offsets for a world of `ranks`.
struct segment_layout {
  std::size_t ranks;

  [[nodiscard]] static constexpr std::size_t header_bytes() {
    return page_up(sizeof(segment_header));
  }

  [[nodiscard]] constexpr std::size_t exchange_at(std::size_t rank) const {
    return header_bytes() + rank * sizeof(exchange_lines);
  }

  [[nodiscard]] constexpr std::size_t announcement_at(std::size_t rank) const {
    return exchange_at(ranks) + rank * sizeof(announcement_line);
  }

  [[nodiscard]] constexpr std::size_t board_at(std::size_t rank) const {
    return announcement_at(ranks) + rank * sizeof(board_lines);
  }

  [[nodiscard]] constexpr std::size_t channel_at(std::size_t from, std::size_t to) const {
    return board_at(ranks) + (from * ranks + to) * sizeof(channel_lines);
  }

  /// Everything before it is control lines.
  [[nodiscard]] constexpr std::size_t staging_at(std::size_t rank) const {
    return page_up(channel_at(ranks, 0)) + rank * slot_count * slot_bytes;
  }

  [[nodiscard]] constexpr std::size_t channel_data_at(std::size_t from, std::size_t to) const {
    return staging_at(ranks) + (from * ranks + to) * channel_slot_count * channel_slot_bytes;
  }

  [[nodiscard]] constexpr std::size_t total_bytes() const { return channel_data_at(ranks, 0); }

 private:
  // 64 KiB: the largest page of arm64.
  [[nodiscard]] static constexpr std::size_t page_up(std::size_t bytes) {
    constexpr std::size_t page = std::size_t{64} * 1024;
    return (bytes + page - 1) / page * page;
  }
};

}  // namespace spark_comm::host::nccl
