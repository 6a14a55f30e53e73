// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/detail/group_context.hpp>
#include <spark_comm/comm/detail/issue.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/comm/submission.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/operation.hpp>

namespace spark_comm {

void submit(communicator& comm, const operation& op) {
  if (op.deadline && *op.deadline <= duration::zero()) {
    error_context around = comm.core().context();
    around.operation = name_of(op.record.kind);
    around.deadline = op.deadline;
    detail::throw_refusal(
        error{errc::invalid_argument, "the deadline must be longer than zero", around});
  }
  if (detail::group_context* group = detail::open_group(); group != nullptr) {
    group->collect(comm.core(), op);
  } else {
    detail::issue(comm.core(), op);
  }
}

}  // namespace spark_comm
