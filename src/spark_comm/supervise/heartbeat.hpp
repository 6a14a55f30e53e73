// SPDX-License-Identifier: AGPL-3.0-only
// What ranks tell each other while they work: the messages of the lifeline, and their bytes.
#pragma once

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/supervise/lane_compare.hpp>
#include <spark_comm/supervise/signature_log.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace spark_comm {

/// Sent at every interval, to each peer its own: the lanes of the pair are among it.
struct heartbeat {
  std::uint64_t number = 0;         ///< Rises by one with each beat.
  std::uint64_t last_sequence = 0;  ///< Of the sender's own count; to show.
  lane_report collectives;
  lane_report outbound;  ///< The sender's sends to the receiver of this beat.
  lane_report inbound;   ///< The sender's receives from it.
};

/// Sent once, to all, when a rank's communicator breaks or is aborted.
struct failure_notice {
  errc code = errc::internal;
  std::int32_t origin = -1;  ///< The rank that failed.
  std::optional<std::uint64_t> sequence;
  std::string text;
  std::vector<std::int32_t> peers;  ///< Whom the sender blames.
};

/// Asks for a stretch of one of the receiver's lanes, to find where two ranks part.
struct history_request {
  lane_kind lane = lane_kind::collectives;  ///< As the rank that is asked calls it.
  std::uint64_t first = 0;
};

/// The answer.
struct history_reply {
  lane_kind lane = lane_kind::collectives;  ///< As the rank that answers calls it.
  lane_report part;
};

/// The sender closes in order; its connection will end and that is no failure.
struct farewell {};

using lifeline_message =
    std::variant<heartbeat, failure_notice, history_request, history_reply, farewell>;

inline constexpr std::size_t most_text_bytes = 512;
inline constexpr std::size_t most_blamed_peers = 64;
inline constexpr std::size_t most_history = 2048;

/// Longer texts and lists are cut to the bounds above.
[[nodiscard]] SPARK_COMM_API std::vector<std::byte> encode(std::uint32_t generation,
                                                           const lifeline_message& message);

/// A message read back.
struct decoded_message {
  std::uint32_t generation = 0;
  lifeline_message message;
};

/// None for anything but exactly what `encode` makes: other version, unknown numbers, bytes too few
/// or too many, values that contradict each other.
[[nodiscard]] SPARK_COMM_API std::optional<decoded_message> decode(
    std::span<const std::byte> bytes);

}  // namespace spark_comm
