// SPDX-License-Identifier: AGPL-3.0-only
#include "operation_call.hpp"

#include "exit_code.hpp"
#include "operation.hpp"
#include "quantity.hpp"

#include <spark_comm/collectives/all_gather.hpp>
#include <spark_comm/collectives/all_reduce.hpp>
#include <spark_comm/collectives/all_to_all.hpp>
#include <spark_comm/collectives/broadcast.hpp>
#include <spark_comm/collectives/recv.hpp>
#include <spark_comm/collectives/reduce.hpp>
#include <spark_comm/collectives/reduce_scatter.hpp>
#include <spark_comm/collectives/send.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/group.hpp>
#include <spark_comm/comm/rank_id.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <fmt/format.h>

namespace spark_comm::app {
namespace {

/// To the next rank, from the one before; in one group, because they wait for each other.
void send_and_receive(communicator& comm, const operation_call& call, cuda::stream_ref s) {
  const int ranks = comm.world_size();
  const rank_id next{(comm.rank() + 1) % ranks};
  const rank_id previous{(comm.rank() + ranks - 1) % ranks};
  group_scope together{comm};
  send(comm, call.in, call.count, call.dtype, next, s);
  recv(comm, call.out, call.count, call.dtype, previous, s);
  together.commit();
}

}  // namespace

void enqueue(communicator& comm, const operation_call& call, cuda::stream_ref s) {
  const rank_id root{call.root};
  switch (call.what) {
    case operation::all_reduce:
      return all_reduce(comm, call.in, call.out, call.count, call.dtype, call.op, s);
    case operation::reduce:
      return reduce(comm, call.in, call.out, call.count, call.dtype, call.op, root, s);
    case operation::broadcast:
      return broadcast(comm, call.in, call.out, call.count, call.dtype, root, s);
    case operation::all_gather:
      return all_gather(comm, call.in, call.out, call.count, call.dtype, s);
    case operation::reduce_scatter:
      return reduce_scatter(comm, call.in, call.out, call.count, call.dtype, call.op, s);
    case operation::send_recv: return send_and_receive(comm, call, s);
    case operation::all_to_all:
      return all_to_all(comm, call.in, call.out, call.count, call.dtype, s);
  }
}

void drain(communicator& comm, cuda::stream_ref s, duration limit, operation what) {
  if (comm.wait(s, limit) == wait_result::timed_out) {
    throw failure(
        exit_code::failed,
        fmt::format("{} was not over after {}", traits_of(what).name, duration_text(limit)));
  }
}

}  // namespace spark_comm::app
