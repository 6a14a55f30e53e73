// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/detail/group_context.hpp>
#include <spark_comm/comm/detail/issue.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/comm/submission.hpp>

namespace spark_comm {

void submit(communicator& comm, const operation& op) {
  if (detail::group_context* group = detail::open_group(); group != nullptr) {
    group->collect(comm.core(), op);
  } else {
    detail::issue(comm.core(), op);
  }
}

}  // namespace spark_comm
