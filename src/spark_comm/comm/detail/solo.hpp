// SPDX-License-Identifier: AGPL-3.0-only
// Messages of a rank to itself, and what a world of one does in the place of NCCL.
#pragma once

#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/operation.hpp>

#include <span>

namespace spark_comm::detail {

/// Throws invalid_usage unless every message of this rank to itself has its other half among
/// `operations`, invalid_argument when the halves differ in size. NCCL would wait for the missing
/// half for ever.
void require_paired_self_messages(const communicator_core& core,
                                  std::span<const operation> operations);

/// Does the operations of a world of one: copies `in` to `out` where they differ.
/// Throws: invalid_argument, invalid_usage as above and for halves on two streams, before anything
/// is enqueued.
void run_alone(const communicator_core& core, std::span<const operation> operations);

}  // namespace spark_comm::detail
