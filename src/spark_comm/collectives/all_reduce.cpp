// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/collectives/all_reduce.hpp>
#include <spark_comm/collectives/detail/check.hpp>
#include <spark_comm/collectives/detail/submit.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/paths/detail/path_launch.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstddef>

namespace spark_comm {
namespace {

launch_result launch_all_reduce(const nccl::api& call,
                                nccl::abi::comm comm,
                                const operation& op) noexcept {
  return {call.ncclAllReduce(op.in,
                             op.out,
                             op.record.count_elements,
                             static_cast<int>(op.record.dtype),
                             static_cast<int>(op.record.op),
                             comm,
                             op.stream),
          "ncclAllReduce"};
}

}  // namespace

void all_reduce(communicator& comm,
                const void* in,
                void* out,
                std::size_t count_elements,
                data_type dtype,
                reduce_op op,
                cuda::stream_ref s,
                const call_options& options) {
  const detail::argument_check check{
      comm.core(), operation_kind::all_reduce, count_elements, dtype};
  check.require_reducible(op);
  const std::size_t bytes = check.bytes();
  check.require_buffer("in", in, bytes);
  check.require_buffer("out", out, bytes);
  if (in != out) {
    check.require_disjoint(in, bytes, out, bytes);
  }
  operation request{.record = {.count_elements = count_elements,
                               .kind = operation_kind::all_reduce,
                               .dtype = dtype,
                               .op = op},
                    .in = in,
                    .out = out,
                    .stream = s.get(),
                    .deadline = options.deadline,
                    .launch = launch_all_reduce};
  detail::path_launch way;
  detail::take_path(comm.core(), request, way);
  detail::submit_collective(comm, request);
}

}  // namespace spark_comm
