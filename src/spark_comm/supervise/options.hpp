// SPDX-License-Identifier: AGPL-3.0-only
// How a communicator is supervised. Every environment variable of this layer is a field here, read
// once.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace spark_comm {

/// When ranks compare what they issue.
enum class mismatch_check : std::uint8_t {
  background,  ///< With every heartbeat; costs nothing on the way of an operation.
  strict,      ///< Before every launch; slow, for debugging.
  off,  ///< Never: operations that do not match are undefined, as in NCCL; deadlines still hold.
};

inline constexpr mismatch_check all_mismatch_checks[] = {
    mismatch_check::background, mismatch_check::strict, mismatch_check::off};

[[nodiscard]] SPARK_COMM_API std::string_view name_of(mismatch_check check) noexcept;

/// Whether a communicator is supervised.
enum class supervision : std::uint8_t {
  on,   ///< Heartbeats, deadlines, flight record.
  off,  ///< None of them; a dead peer is noticed by whoever waits, at its own deadline.
};

/// Gives a variable's value, none if it is not set.
using environment_lookup = std::function<std::optional<std::string>(const std::string& name)>;

struct SPARK_COMM_API supervise_options {
  /// `SPARK_COMM_SUPERVISION`: "on" or "off".
  supervision enabled = supervision::on;

  /// `SPARK_COMM_MISMATCH_CHECK`: "background", "strict" or "off".
  mismatch_check check = mismatch_check::background;

  /// `SPARK_COMM_HEARTBEAT_MS`: how often ranks tell each other where they are; 1 to 60000.
  duration heartbeat_interval = std::chrono::milliseconds{100};

  /// `SPARK_COMM_SILENCE_MS`: how long a peer may say nothing before it counts as lost; at least
  /// three heartbeats.
  duration silence_limit = std::chrono::seconds{5};

  /// `SPARK_COMM_FLIGHT_DIR`: where flight records are kept; empty: in memory only, for error
  /// texts.
  std::string record_directory;

  /// `SPARK_COMM_FLIGHT_ENTRIES`: how many operations a flight record holds; 1 to 1048576.
  std::size_t record_capacity = 4096;

  /// `SPARK_COMM_METRICS_DIR`: where metrics are written for node exporter's textfile collector, a
  /// file each communicator and rank; empty: nowhere.
  std::string metrics_directory;

  /// `SPARK_COMM_METRICS_PORT`: rank r serves its metrics at this port plus r, on 127.0.0.1; 1 to
  /// 65535; 0: nobody does.
  int metrics_port = 0;

  /// `defaults` with what the environment says put over it.
  /// Throws: invalid_argument naming the variable, its value and what is allowed.
  [[nodiscard]] static supervise_options from_environment(const supervise_options& defaults,
                                                          const environment_lookup& lookup);

  /// From the process's own environment. Who: before other threads change it.
  [[nodiscard]] static supervise_options from_environment();

  /// Throws: invalid_argument naming the field that is out of bounds.
  void validate() const;
};

/// The names of all variables above, for a check of misspelt ones.
inline constexpr std::string_view supervise_variables[] = {
    "SPARK_COMM_SUPERVISION",
    "SPARK_COMM_MISMATCH_CHECK",
    "SPARK_COMM_HEARTBEAT_MS",
    "SPARK_COMM_SILENCE_MS",
    "SPARK_COMM_FLIGHT_DIR",
    "SPARK_COMM_FLIGHT_ENTRIES",
    "SPARK_COMM_METRICS_DIR",
    "SPARK_COMM_METRICS_PORT",
};

}  // namespace spark_comm
