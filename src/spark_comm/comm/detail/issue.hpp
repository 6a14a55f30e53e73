// SPDX-License-Identifier: AGPL-3.0-only
// Issues a batch of operations: one by itself, or several, of one or more communicators, in a
// group.
#pragma once

#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/operation.hpp>

#include <memory>
#include <span>
#include <vector>

namespace spark_comm::detail {

/// One communicator's part of a batch, in the order of issue.
struct batch {
  std::shared_ptr<communicator_core> core;
  std::vector<operation> operations;
};

/// Issues one operation. Throws as `submit`.
void issue(communicator_core& core, operation op);

/// Issues all batches as one native group.
/// Throws: as `submit`; a failure breaks every communicator of the group, and nothing of the group
/// was launched.
void issue_group(std::span<const batch> all);

}  // namespace spark_comm::detail
