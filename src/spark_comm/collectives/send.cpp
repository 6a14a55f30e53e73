// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/collectives/detail/check.hpp>
#include <spark_comm/collectives/detail/submit.hpp>
#include <spark_comm/collectives/send.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstddef>

namespace spark_comm {
namespace {

launch_result launch_send(const nccl::api& call,
                          nccl::abi::comm comm,
                          const operation& op) noexcept {
  return {call.ncclSend(op.in,
                        op.record.count_elements,
                        detail::moved_type(op.record.dtype),
                        op.record.root_or_peer,
                        comm,
                        op.stream),
          "ncclSend"};
}

}  // namespace

void send(communicator& comm,
          const void* in,
          std::size_t count_elements,
          data_type dtype,
          rank_id peer,
          cuda::stream_ref s,
          const call_options& options) {
  const detail::argument_check check{comm.core(), operation_kind::send, count_elements, dtype};
  check.require_rank("peer", peer.value);
  check.require_buffer("in", in, check.bytes());
  detail::submit_point_to_point(comm,
                                check,
                                {.record = {.count_elements = count_elements,
                                            .root_or_peer = peer.value,
                                            .kind = operation_kind::send,
                                            .dtype = dtype},
                                 .in = in,
                                 .stream = s.get(),
                                 .deadline = options.deadline,
                                 .launch = launch_send});
}

}  // namespace spark_comm
