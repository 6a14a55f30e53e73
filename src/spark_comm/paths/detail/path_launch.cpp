// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/group_context.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/paths/detail/path_launch.hpp>
#include <spark_comm/paths/detail/path_set.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstdint>

namespace spark_comm::detail {
namespace {

kernels::exchange_protocol protocol_of(path_kind path) noexcept {
  switch (path) {
    case path_kind::low_latency:    return kernels::exchange_protocol::low_latency;
    case path_kind::two_shot:       return kernels::exchange_protocol::two_shot;
    case path_kind::one_shot:
    case path_kind::one_shot_fused:
    case path_kind::exchange:
    case path_kind::exchange_fused:
    case path_kind::nccl:
    case path_kind::local:          break;
  }
  return kernels::exchange_protocol::one_shot;
}

native_launch launch_of(path_kind path) noexcept {
  return path == path_kind::exchange ? launch_exchange : launch_through_segments;
}

}  // namespace

void require_no_group(const communicator_core& core, operation_kind kind) {
  if (open_group() != nullptr) {
    error_context context = core.context();
    context.operation = name_of(kind);
    throw error{errc::invalid_usage, "it is more than one launch, and not for groups", context};
  }
}

path_launch choose_way(const communicator_core& core,
                       const operation& op,
                       std::uint64_t staging_bytes) {
  path_set& paths = paths_of(core);
  return {.paths = &paths,
          .way = paths.choose({.operation = op.record.kind,
                               .dtype = op.record.dtype,
                               .op = op.record.op,
                               .bytes = op.record.count_elements * size_of(op.record.dtype),
                               .staging_bytes = staging_bytes},
                              cuda::stream_ref{op.stream}),
          .wait_limit = op.deadline.value_or(core.options().operation_deadline)};
}

void take_path(const communicator_core& core, operation& op, path_launch& state) {
  if (core.is_alone() || op.record.count_elements == 0 || open_group() != nullptr) {
    return;
  }
  state = choose_way(core, op, op.record.count_elements * size_of(op.record.dtype));
  if (state.way.kind != path_kind::nccl) {
    op.record.path = state.way.kind;
    op.launch = launch_of(state.way.kind);
    op.path_state = &state;
  }
}

launch_result launch_through_segments(const nccl::api& /*call*/,
                                      nccl::abi::comm /*comm*/,
                                      const operation& op) noexcept {
  return guarded("cuLaunchKernel", [&]() -> launch_result {
    const path_launch& state = launch_state(op);
    kernels::all_reduce(state.paths->kernels(),
                        state.paths->segments(state.way.slot, state.wait_limit),
                        protocol_of(state.way.kind),
                        {.dtype = op.record.dtype,
                         .in = op.in,
                         .out = op.out,
                         .count_elements = op.record.count_elements},
                        cuda::stream_ref{op.stream});
    return {};
  });
}

}  // namespace spark_comm::detail
