// SPDX-License-Identifier: AGPL-3.0-only
// Which way a communicator's operations go, for those who want to know beforehand.
#pragma once

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/supervise/operation.hpp>

namespace spark_comm {

/// The way of an operation outside a group, on a stream that has buffers.
[[nodiscard]] SPARK_COMM_API path_kind path_of(const communicator& comm, const path_query& asked);

/// What the ranks agreed on at the join.
[[nodiscard]] SPARK_COMM_API const path_capabilities& capabilities_of(const communicator& comm);

}  // namespace spark_comm
