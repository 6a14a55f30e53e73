// SPDX-License-Identifier: AGPL-3.0-only
// What the environment variables of spark_comm and NCCL may hold.
#pragma once

#include <map>
#include <string>

namespace spark_comm::app::doctor {

/// What the variable accepts, if its value in `all` is not among it; empty when the value is fine
/// or the variable takes anything.
/// Source: the option structs of spark_comm, and NCCL's user guide, 2.32.
[[nodiscard]] std::string refused_value(const std::string& name,
                                        const std::map<std::string, std::string>& all);

}  // namespace spark_comm::app::doctor
