// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/collectives/all_gather.hpp>
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

launch_result launch_all_gather(const nccl::api& call,
                                nccl::abi::comm comm,
                                const operation& op) noexcept {
  return {call.ncclAllGather(op.in,
                             op.out,
                             op.record.count_elements,
                             detail::moved_type(op.record.dtype),
                             comm,
                             op.stream),
          "ncclAllGather"};
}

}  // namespace

void all_gather(communicator& comm,
                const void* in,
                void* out,
                std::size_t count_elements,
                data_type dtype,
                cuda::stream_ref s,
                const call_options& options) {
  const detail::argument_check check{
      comm.core(), operation_kind::all_gather, count_elements, dtype};
  const std::size_t block_bytes = check.bytes();
  const std::size_t all_bytes = check.bytes(static_cast<std::size_t>(comm.world_size()));
  check.require_buffer("in", in, block_bytes);
  check.require_buffer("out", out, all_bytes);
  if (in != detail::block_at(out, block_bytes, comm.rank())) {
    check.require_disjoint(in, block_bytes, out, all_bytes);
  }
  detail::submit_collective(comm,
                            {.record = {.count_elements = count_elements,
                                        .kind = operation_kind::all_gather,
                                        .dtype = dtype},
                             .in = in,
                             .out = out,
                             .stream = s.get(),
                             .deadline = options.deadline,
                             .launch = launch_all_gather});
}

}  // namespace spark_comm
