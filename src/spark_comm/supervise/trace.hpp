// SPDX-License-Identifier: AGPL-3.0-only
// Flight records of several ranks laid side by side: what went wrong first, and who waits for whom.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/supervise/flight_reader.hpp>
#include <spark_comm/supervise/signature.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm {

/// Two ranks whose operations do not match.
struct trace_divergence {
  int rank = 0;  ///< Whose is `found.mine`.
  int peer = 0;  ///< Whose is `found.theirs`.
  divergence found;
};

/// What one rank was doing last.
struct rank_standing {
  int rank = 0;
  std::uint64_t collectives = 0;       ///< Ordinal of the last one submitted.
  std::optional<flight_entry> oldest;  ///< The oldest operation that was not seen to end.
  std::optional<flight_entry> failed;  ///< The first that failed.
  std::optional<flight_entry> last;    ///< The last one submitted.
  std::optional<flight_end> end;
};

/// One communicator in one generation.
struct flight_trace {
  std::string name;
  std::uint32_t generation = 0;
  int world_size = 0;
  std::vector<flight_log> logs;      ///< In rank order, one a rank.
  std::vector<int> missing;          ///< Ranks without a record.
  std::vector<rank_standing> ranks;  ///< As `logs`.
  std::optional<trace_divergence> first;
  std::vector<std::string> findings;  ///< In plain words, most important first.
};

/// Sorts records by communicator and generation, and analyses each. Records that cannot be told
/// apart or whose header is damaged are left to the end of `findings`, by path.
[[nodiscard]] SPARK_COMM_API std::vector<flight_trace> merge_flight_records(
    std::vector<flight_log> logs);

/// A rank's steady time as nanoseconds since 1970, so that ranks can be compared as well as their
/// wall clocks agree.
[[nodiscard]] SPARK_COMM_API std::int64_t wall_ns(const flight_log& log,
                                                  std::int64_t steady_ns) noexcept;

/// The trace as JSON that Perfetto and chrome://tracing read: a process a rank, a thread a stream,
/// a slice an operation; how long it was queued is a slice of its own. Cost: about 400 bytes an
/// operation.
[[nodiscard]] SPARK_COMM_API std::string to_chrome_trace(const flight_trace& trace);

/// `text` as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] SPARK_COMM_API std::string json_string(std::string_view text);

}  // namespace spark_comm
