// SPDX-License-Identifier: AGPL-3.0-only
// The one door through which operations reach NCCL: state, thread and stream are checked here, the
// sequence number is taken, the launch is recorded, and its failure breaks the communicator.
#pragma once

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/export.hpp>

namespace spark_comm {

/// Issues `op` now, or collects it when this thread has a `group_scope` open.
///
/// Arguments have been checked by the caller. Order: enqueued on `op.stream`.
/// Throws: the first error of a broken communicator; aborted; invalid_usage (closed, in use by
/// another thread); invalid_argument (stream of another device); the native error, after which the
/// communicator is broken, whatever NCCL called it: the other ranks may have launched their part.
SPARK_COMM_API void submit(communicator& comm, const operation& op);

}  // namespace spark_comm
