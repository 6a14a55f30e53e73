// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/collectives/detail/check.hpp>
#include <spark_comm/collectives/detail/submit.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/group_context.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/comm/submission.hpp>

namespace spark_comm::detail {

void submit_collective(communicator& comm, const operation& op) {
  communicator_core& core = comm.core();
  if (op.record.count_elements == 0) {
    core.require_operable();
    return;
  }
  submit(comm, op);
}

void submit_point_to_point(communicator& comm, const argument_check& check, const operation& op) {
  if (op.record.root_or_peer == comm.rank() && open_group() == nullptr) {
    check.fail("a message to this rank itself needs a group that holds both halves");
  }
  submit(comm, op);
}

}  // namespace spark_comm::detail
