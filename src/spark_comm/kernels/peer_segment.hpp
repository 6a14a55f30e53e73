// SPDX-License-Identifier: AGPL-3.0-only
// The memory through which ranks that can map each other's memory exchange data inside a kernel:
// one segment a rank and stream. Layout and status only; plain C++, because device code includes
// it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spark_comm::kernels {

/// Most ranks that exchange through segments.
inline constexpr int max_world = 8;

/// Most blocks of one exchange kernel; each has flags of its own in every segment.
inline constexpr int max_exchange_blocks = 128;

/// What ended an exchange early.
enum class exchange_failure : std::uint32_t {
  none = 0,       ///< Nothing failed so far.
  timed_out = 1,  ///< A peer's data did not come within the limit.
  aborted = 2,    ///< The abort word was set while waiting.
};

/// Where a kernel reports the wait that ran out: pinned host memory, zero at birth, written once.
/// The host reads `failure` first, with acquire; the rest is valid when it is not `none`.
struct exchange_status {
  exchange_failure failure;  ///< Written last.
  std::uint32_t block;       ///< The block that waited.
  std::uint32_t peer;        ///< The rank it waited for.
  std::uint32_t reserved;
  std::uint64_t round;  ///< The round it was in, counted from 1 for each protocol.
};

/// Sizes that all ranks agree on when segments are made.
struct segment_limits {
  std::size_t staging_bytes = 0;      ///< Largest staged message; a multiple of 256.
  std::size_t low_latency_bytes = 0;  ///< Largest low-latency message; a multiple of 16; may be 0.
  int world = 0;                      ///< 2 to `max_world`.
};

/// The start of a segment. All zero before any rank of the world launches its first exchange.
///
/// Rounds are 64-bit and start at 1, so a flag never comes round again. They live in device memory
/// and are advanced by the kernels, so that a replayed graph counts on by itself.
struct segment_header {
  /// Rounds finished, one copy a block, all equal between launches. Owner's kernels only.
  std::uint64_t rounds[max_exchange_blocks];
  /// The same for the low-latency protocol, which has slots of its own.
  std::uint64_t low_latency_rounds[max_exchange_blocks];
  /// An exchange_failure; once it is set, every later launch returns at once.
  std::uint32_t poisoned;
  std::uint32_t reserved[63];
  /// Latest round for which block `b` of rank `r` has published stage `s`: flags[s][b][r].
  /// Written by rank r's kernels, read by the owner's.
  std::uint64_t flags[2][max_exchange_blocks][max_world];
};

static_assert(sizeof(segment_header) % 256 == 0);

/// A segment is: header, two staging slots, and two low-latency slots of one area a source rank.
/// Two slots suffice: a rank writes round n + 2 only after its round n + 1 saw every peer's flag of
/// n + 1, and a peer publishes n + 1 only after its whole kernel of round n, stream order says.
[[nodiscard]] constexpr std::size_t staging_offset(const segment_limits& limits,
                                                   std::uint64_t round) {
  return sizeof(segment_header) + (round % 2 != 0 ? limits.staging_bytes : 0);
}

/// A low-latency line: 8 bytes of data and two copies of the 4-byte flag.
inline constexpr std::size_t line_bytes = 16;
inline constexpr std::size_t line_data_bytes = 8;

/// The flag of a round: its number folded into 32 bits without 0, which a new line holds.
[[nodiscard]] constexpr std::uint32_t low_latency_flag(std::uint64_t round) {
  return static_cast<std::uint32_t>(round % 0xffffffffU) + 1;
}

/// Whether the sender writes every line in this round, used or not: once a slot in each cycle of
/// flags, so that no line ever holds a flag that is a whole cycle old.
[[nodiscard]] constexpr bool refreshes_lines(std::uint64_t round) {
  return low_latency_flag(round) <= 2;
}

/// Lines that hold `bytes` of data.
[[nodiscard]] constexpr std::size_t lines_of(std::size_t bytes) {
  return (bytes + line_data_bytes - 1) / line_data_bytes;
}

/// Offset of the lines that rank `source` sends to the segment's owner in `round`.
[[nodiscard]] constexpr std::size_t low_latency_offset(const segment_limits& limits,
                                                       std::uint64_t round,
                                                       int source) {
  const std::size_t area = lines_of(limits.low_latency_bytes) * line_bytes;
  const std::size_t slot = (round % 2 != 0 ? static_cast<std::size_t>(limits.world) : 0);
  return sizeof(segment_header) + 2 * limits.staging_bytes +
         (slot + static_cast<std::size_t>(source)) * area;
}

/// Bytes of a whole segment.
[[nodiscard]] constexpr std::size_t segment_bytes(const segment_limits& limits) {
  return low_latency_offset(limits, 1, limits.world);
}

}  // namespace spark_comm::kernels
