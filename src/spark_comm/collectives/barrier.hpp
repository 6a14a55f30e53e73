// SPDX-License-Identifier: AGPL-3.0-only
// barrier: nobody goes on before everybody has arrived.
#pragma once

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>

namespace spark_comm {

/// Waits on the host until every rank has called it.
///
/// A one-element all-reduce on a stream of the communicator's own and a bounded wait: NCCL drops
/// empty collectives, so an empty one would wait for nobody.
/// Order: independent of the program's streams. Not capturable.
/// Who: every rank, in the same order as its other operations.
/// Throws: timed_out when the limit passes, and the communicator is broken, because this rank has
/// already contributed; as `all_reduce` otherwise.
SPARK_COMM_API void barrier(communicator& comm, duration limit);

}  // namespace spark_comm
