// SPDX-License-Identifier: AGPL-3.0-only
// The last step of every operation: what needs no peer is done here, the rest is submitted.
#pragma once

#include <spark_comm/collectives/detail/check.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/operation.hpp>

namespace spark_comm::detail {

/// Submits a collective whose arguments have been checked. An empty one is a success at once, as
/// NCCL's is, and takes no sequence number; a world of one copies `in` to `out`.
void submit_collective(communicator& comm, const operation& op);

/// Submits a send or receive whose arguments have been checked. Empty ones are real.
/// Throws: invalid_argument for a message to this rank itself outside a group.
void submit_point_to_point(communicator& comm, const argument_check& check, const operation& op);

}  // namespace spark_comm::detail
