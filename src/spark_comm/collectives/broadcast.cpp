// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/collectives/broadcast.hpp>
#include <spark_comm/collectives/detail/check.hpp>
#include <spark_comm/collectives/detail/submit.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstddef>

namespace spark_comm {
namespace {

launch_result launch_broadcast(const nccl::api& call,
                               nccl::abi::comm comm,
                               const operation& op) noexcept {
  return {call.ncclBroadcast(op.in,
                             op.out,
                             op.record.count_elements,
                             detail::moved_type(op.record.dtype),
                             op.record.root_or_peer,
                             comm,
                             op.stream),
          "ncclBroadcast"};
}

}  // namespace

void broadcast(communicator& comm,
               const void* in,
               void* out,
               std::size_t count_elements,
               data_type dtype,
               rank_id root,
               cuda::stream_ref s,
               const call_options& options) {
  const detail::argument_check check{comm.core(), operation_kind::broadcast, count_elements, dtype};
  check.require_rank("root", root.value);
  const std::size_t bytes = check.bytes();
  check.require_buffer("out", out, bytes);
  if (comm.rank() == root.value) {
    check.require_buffer("in", in, bytes);
    if (in != out) {
      check.require_disjoint(in, bytes, out, bytes);
    }
  }
  detail::submit_collective(comm,
                            {.record = {.count_elements = count_elements,
                                        .root_or_peer = root.value,
                                        .kind = operation_kind::broadcast,
                                        .dtype = dtype},
                             .in = in,
                             .out = out,
                             .stream = s.get(),
                             .deadline = options.deadline,
                             .launch = launch_broadcast});
}

}  // namespace spark_comm
