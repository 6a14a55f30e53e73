// SPDX-License-Identifier: AGPL-3.0-only
// Which files of a machine `doctor` looks at, and how each kind is turned into a small text.
#pragma once

#include <string>
#include <vector>

namespace spark_comm::app::doctor {

struct found_file {
  std::string path;  ///< Below the root, without the leading slash.
  std::string text;
};

/// The variables that concern communication, one `NAME=value` a line, keys hidden.
[[nodiscard]] std::string environment_in(const std::string& root);

/// Everything else. `environment` says where the loader and NCCL look besides.
[[nodiscard]] std::vector<found_file> find_files(const std::string& root,
                                                 const std::string& environment);

/// The byte counters of all ports.
[[nodiscard]] std::vector<found_file> find_counters(const std::string& root);

/// The value of a variable in a text of `environment_in`; empty if it is not set.
[[nodiscard]] std::string variable_in(const std::string& environment, const std::string& name);

}  // namespace spark_comm::app::doctor
