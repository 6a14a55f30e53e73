// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/collectives/all_reduce.hpp>
#include <spark_comm/collectives/barrier.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/group_context.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/supervise/operation.hpp>

namespace spark_comm {

void barrier(communicator& comm, duration limit) {
  detail::communicator_core& core = comm.core();
  core.require_operable();
  if (limit <= duration::zero()) {
    error_context around = core.context();
    around.operation = name_of(operation_kind::barrier);
    around.deadline = limit;
    throw error{errc::invalid_argument, "the limit must be longer than zero", around};
  }
  if (comm.world_size() == 1) {
    return;
  }
  if (detail::open_group() != nullptr) {
    throw error{errc::invalid_usage,
                "a barrier waits on the host, so it cannot be in a group",
                core.context()};
  }
  void* element = core.barrier_element();
  const cuda::stream& own = core.own_stream();
  all_reduce(comm, element, element, 1, data_type::int32, reduce_op::max, own, {.deadline = limit});
  if (comm.wait(own, limit) == wait_result::timed_out) {
    error_context around = core.context();
    around.operation = name_of(operation_kind::barrier);
    around.sequence = core.sequence();
    around.deadline = limit;
    const error failure{errc::timed_out, "not every rank has come to the barrier", around};
    core.fail_and_announce(failure);
    throw failure;
  }
}

}  // namespace spark_comm
