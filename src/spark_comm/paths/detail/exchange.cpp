// SPDX-License-Identifier: AGPL-3.0-only
// The exchange of two ranks: each sends the other its message and adds both itself, in rank order.
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/add.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/paths/detail/exchange.hpp>
#include <spark_comm/paths/detail/path_launch.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <array>

namespace spark_comm::detail {
launch_result swap_messages(const nccl::api& call,
                            nccl::abi::comm comm,
                            const operation& op) noexcept {
  const path_launch& state = launch_state(op);
  const int peer = 1 - state.paths->place().rank;
  const int dtype = static_cast<int>(op.record.dtype);
  launch_result result{call.ncclGroupStart(), "ncclGroupStart"};
  if (!result.is_launched()) {
    return result;
  }
  result = {call.ncclSend(op.in, op.record.count_elements, dtype, peer, comm, op.stream),
            "ncclSend"};
  if (result.is_launched()) {
    result = {call.ncclRecv(state.paths->receive_buffer(state.way.slot),
                            op.record.count_elements,
                            dtype,
                            peer,
                            comm,
                            op.stream),
              "ncclRecv"};
  }
  // Ended whatever happened: an open group would swallow all later calls of this thread.
  const nccl::abi::result end = call.ncclGroupEnd();
  return result.is_launched() ? launch_result{end, "ncclGroupEnd"} : result;
}

std::array<const void*, 2> messages_in_rank_order(const operation& op) noexcept {
  const path_launch& state = launch_state(op);
  const void* const received = state.paths->receive_buffer(state.way.slot);
  return state.paths->place().rank == 0 ? std::array{op.in, received} : std::array{received, op.in};
}

launch_result launch_exchange(const nccl::api& call,
                              nccl::abi::comm comm,
                              const operation& op) noexcept {
  return guarded("cuLaunchKernel", [&] {
    const launch_result swapped = swap_messages(call, comm, op);
    if (swapped.is_launched()) {
      const auto messages = messages_in_rank_order(op);
      kernels::add(launch_state(op).paths->kernels(),
                   {.dtype = op.record.dtype,
                    .inputs = messages,
                    .out = op.out,
                    .count_elements = op.record.count_elements},
                   cuda::stream_ref{op.stream});
    }
    return swapped;
  });
}

}  // namespace spark_comm::detail
