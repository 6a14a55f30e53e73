// SPDX-License-Identifier: AGPL-3.0-only
// Reads flight records back, whatever state their process left them in.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/supervise/flight_entry.hpp>
#include <spark_comm/supervise/flight_record.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spark_comm {

/// One rank's file, as far as it could be read.
struct flight_log {
  std::string path;
  flight_identity who;
  std::string host;
  std::uint64_t process = 0;
  std::int64_t wall_base_ns = 0;    ///< Wall clock (since 1970) when the steady clock stood at ...
  std::int64_t steady_base_ns = 0;  ///< ... this.
  std::optional<flight_end> end;    ///< None: the process never came to say.
  std::uint64_t written = 0;  ///< Operations submitted in all; the ring holds the last of them.
  std::vector<flight_entry> entries;  ///< By index; gaps where entries were damaged.
  std::vector<std::string> problems;  ///< What could not be read, in plain words.

  /// The header was whole, so that `who` and the clocks can be relied on.
  bool is_identified = false;
};

/// Any bytes are good enough: what is damaged is left out and told in `problems`.
/// Throws: system_failed when the file cannot be opened or read, invalid_argument when it is far
/// larger than any flight record.
[[nodiscard]] SPARK_COMM_API flight_log read_flight_record(const std::string& path);

/// The same over bytes in memory.
[[nodiscard]] SPARK_COMM_API flight_log parse_flight_record(std::span<const std::byte> bytes);

}  // namespace spark_comm
