// SPDX-License-Identifier: AGPL-3.0-only
// The machines of tests/data/machines, written after public descriptions of such machines, and what
// a check says about them.
#pragma once

#include "doctor/checks.hpp"
#include "doctor/finding.hpp"
#include "doctor/machine_files.hpp"
#include "doctor/snapshot.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm::app::doctor::testing {

inline machine_files machine(const std::string& shape) {
  return machine_files::open(SPARK_COMM_TEST_MACHINES "/" + shape + ".machine");
}

/// The same with files changed: an empty text removes the path and what is under it.
inline machine_files with(machine_files files,
                          const std::vector<std::pair<std::string, std::string>>& changes) {
  for (const auto& [path, text] : changes) {
    if (text.empty()) {
      files.remove(path);
    } else {
      files.put(path, text);
    }
  }
  return files;
}

/// With one more line in the environment.
inline machine_files with_variable(machine_files files, const std::string& line) {
  const std::string path = "proc/self/environ";
  files.put(path, files.text(path) + "\n" + line + "\n");
  return files;
}

/// "warning roce.mtu", sorted.
inline std::vector<std::string> names_of(const findings& all) {
  std::vector<std::string> names;
  for (const finding& each : all) {
    names.push_back(std::string{name_of(each.how)} + " " + each.check);
  }
  std::ranges::sort(names);
  return names;
}

inline std::vector<std::string> judged(const machine_files& files) {
  return names_of(check_machine(read_snapshot(files)));
}

}  // namespace spark_comm::app::doctor::testing
