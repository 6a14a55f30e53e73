// SPDX-License-Identifier: AGPL-3.0-only
// Mistakes in the environment that nothing else would tell: variables under a name that nobody
// reads, and interfaces that are not there.
#pragma once

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/export.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm {

/// The variables that spark_comm, its host runtime and its tool read. Sorted.
[[nodiscard]] SPARK_COMM_API std::span<const std::string_view> known_variables() noexcept;

struct misspelt_variable {
  std::string name;
  std::string nearest;  ///< The name that was probably meant.
};

/// Those of `names` that look like a variable of spark_comm or NCCL and are none. A name that is
/// like no known one is left alone: a plug-in or a newer NCCL may read it.
[[nodiscard]] SPARK_COMM_API std::vector<misspelt_variable> misspelt_variables(
    std::span<const std::string> names);

/// The names in this process's environment.
/// Threads: none may change the environment meanwhile.
[[nodiscard]] SPARK_COMM_API std::vector<std::string> environment_names();

/// Called at a join. Warns of each misspelt variable once; the start goes on.
/// Throws: invalid_argument when NCCL_SOCKET_IFNAME selects no interface, naming those that are
/// there.
SPARK_COMM_API void check_environment(const diagnostics& log);

}  // namespace spark_comm
