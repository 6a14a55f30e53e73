// SPDX-License-Identifier: AGPL-3.0-only
// What a rank process tells the process that started it: one line of JSON each, on a pipe of their
// own, so that neither the library under test nor the ranks' output can get in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spark_comm::app {

/// The head listens; the other ranks can be started.
struct listening_report {
  std::string address;
};

/// The rank has joined.
struct ready_report {
  int rank = 0;
  int world_size = 0;
  std::string runtime;      ///< "nvidia" or "host".
  std::string description;  ///< One line on what was loaded.
  std::string device;
  std::string driver_version;
  std::string nccl_version;
  std::size_t rows = 0;  ///< How many rows (sizes or operations) will come.
};

/// Times and correctness of one size, in place or out of place.
struct measured_report {
  std::size_t row = 0;
  bool in_place = false;
  std::uint64_t size_bytes = 0;
  std::uint64_t count = 0;
  std::uint64_t wrong = 0;
  std::vector<double> microseconds;  ///< One an iteration; empty when something was wrong.
};

/// All combinations of one operation were tried.
struct checked_report {
  std::string operation;
  std::uint64_t passed = 0;
  std::uint64_t failed = 0;
  std::map<std::string, std::uint64_t> not_supported;  ///< How many, by reason.
  std::vector<std::string> failures;                   ///< The first few, in words.
  /// Over all results that must be equal on every rank.
  std::uint64_t digest = 0;
};

/// The rank gives up.
struct failed_report {
  int exit_code = 0;
  std::string text;
};

using rank_report =
    std::variant<listening_report, ready_report, measured_report, checked_report, failed_report>;

/// One line, without its end.
[[nodiscard]] std::string encode(const rank_report& report);

/// Throws: failure (failed) when `line` is no report.
[[nodiscard]] rank_report decode(std::string_view line);

}  // namespace spark_comm::app
