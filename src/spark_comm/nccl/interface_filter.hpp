// SPDX-License-Identifier: AGPL-3.0-only
// What a list of interfaces in a variable of NCCL selects, as NCCL reads such lists.
#pragma once

#include <spark_comm/core/export.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::nccl {

/// Those of `present` that `list` selects, in their order: comma-separated beginnings of names;
/// `^` in front excludes, `=` in front means whole names, what follows a `:` is a port. An empty
/// list selects all.
/// Source: NCCL_SOCKET_IFNAME and NCCL_IB_HCA in NCCL's user guide, 2.32.
[[nodiscard]] SPARK_COMM_API std::vector<std::string> select_interfaces(
    std::string_view list, std::span<const std::string> present);

/// Throws: invalid_argument naming the variable, its value and the names that are there, when the
/// list selects none of them. NCCL would end its init with an error that names neither.
SPARK_COMM_API void require_interfaces(std::string_view variable,
                                       std::string_view list,
                                       std::span<const std::string> present);

}  // namespace spark_comm::nccl
