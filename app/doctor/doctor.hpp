// SPDX-License-Identifier: AGPL-3.0-only
// `doctor`: what is wrong with this machine, or between two, and the command that mends it.
#pragma once

#include "doctor/finding.hpp"
#include "doctor/snapshot.hpp"
#include "exit_code.hpp"

#include <spark_comm/core/time.hpp>

#include <chrono>
#include <optional>
#include <span>
#include <string>

namespace spark_comm::app {

struct doctor_options {
  std::string root = "/";   ///< This machine, a folder that looks like one, or a recording.
  std::string record_file;  ///< Where to write a recording; empty: nowhere.
  std::string peer;         ///< Meeting point of two machines, the same on both; empty: alone.
  std::optional<int> rank;  ///< Who listens there (0); unset: the machine that has the address.
  duration deadline = std::chrono::seconds{30};
  bool as_json = false;
};

/// Throws: failure (usage).
void validate(const doctor_options& options);

namespace doctor {

[[nodiscard]] std::string to_json(const machine_snapshot& machine, std::span<const finding> all);

}  // namespace doctor

/// The exit code is the worst finding's: 0 notes, 1 warnings, 4 problems.
/// Throws: failure; spark_comm::error when the other machine is not met.
[[nodiscard]] exit_code run_doctor(const doctor_options& options);

}  // namespace spark_comm::app
