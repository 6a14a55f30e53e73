// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/rms_norm.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/paths/detail/exchange.hpp>
#include <spark_comm/paths/detail/fused_launch.hpp>
#include <spark_comm/paths/detail/path_launch.hpp>
#include <spark_comm/supervise/operation.hpp>

namespace spark_comm::detail {
namespace {

constexpr const char* kernel_launch = "cuLaunchKernel";

launch_result launch_one_shot_fused(const nccl::api& /*call*/,
                                    nccl::abi::comm /*comm*/,
                                    const operation& op) noexcept {
  return guarded(kernel_launch, [&]() -> launch_result {
    const path_launch& state = launch_state(op);
    kernels::one_shot_rms_norm(state.paths->kernels(),
                               state.paths->segments(state.way.slot, state.wait_limit),
                               *state.norm,
                               cuda::stream_ref{op.stream});
    return {};
  });
}

launch_result launch_exchange_fused(const nccl::api& call,
                                    nccl::abi::comm comm,
                                    const operation& op) noexcept {
  return guarded(kernel_launch, [&] {
    const path_launch& state = launch_state(op);
    const launch_result swapped = swap_messages(call, comm, op);
    if (swapped.is_launched()) {
      const auto messages = messages_in_rank_order(op);
      kernels::rms_norm_call norm = *state.norm;
      norm.partials = messages;
      kernels::rms_norm(state.paths->kernels(), norm, cuda::stream_ref{op.stream});
    }
    return swapped;
  });
}

launch_result launch_nccl_and_norm(const nccl::api& call,
                                   nccl::abi::comm comm,
                                   const operation& op) noexcept {
  return guarded(kernel_launch, [&] {
    const path_launch& state = launch_state(op);
    const launch_result summed{call.ncclAllReduce(op.in,
                                                  op.out,
                                                  op.record.count_elements,
                                                  static_cast<int>(op.record.dtype),
                                                  static_cast<int>(op.record.op),
                                                  comm,
                                                  op.stream),
                               "ncclAllReduce"};
    if (summed.is_launched()) {
      kernels::rms_norm(state.paths->kernels(), *state.norm, cuda::stream_ref{op.stream});
    }
    return summed;
  });
}

}  // namespace

native_launch fused_launch_of(path_kind path) noexcept {
  switch (path) {
    case path_kind::one_shot_fused: return launch_one_shot_fused;
    case path_kind::exchange_fused: return launch_exchange_fused;
    case path_kind::nccl:
    case path_kind::exchange:
    case path_kind::one_shot:
    case path_kind::two_shot:
    case path_kind::low_latency:
    case path_kind::local:          break;
  }
  return launch_nccl_and_norm;
}

}  // namespace spark_comm::detail
