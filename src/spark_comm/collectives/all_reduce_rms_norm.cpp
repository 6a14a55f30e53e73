// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/collectives/all_reduce_rms_norm.hpp>
#include <spark_comm/collectives/detail/check.hpp>
#include <spark_comm/collectives/detail/submit.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/detail/rms_norm_launch.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/rms_norm.hpp>
#include <spark_comm/paths/detail/fused_launch.hpp>
#include <spark_comm/paths/detail/path_launch.hpp>
#include <spark_comm/paths/detail/path_set.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <array>
#include <cstddef>

namespace spark_comm {
namespace {

error_context context_of(const communicator& comm, const rms_norm_arguments& what) {
  error_context context = comm.core().context();
  context.operation = name_of(operation_kind::all_reduce_rms_norm);
  context.dtype = what.dtype;
  return context;
}

// The checks of the kernels, before the operation takes its place in the order.
void require_valid(const communicator& comm, const kernels::rms_norm_call& call) {
  try {
    kernels::detail::check(call);
  } catch (const error& failure) {
    throw failure.with_context(
        context_of(comm, {.dtype = call.dtype, .rows = call.rows, .hidden = call.hidden}));
  }
}

}  // namespace

void all_reduce_rms_norm(communicator& comm,
                         const rms_norm_arguments& what,
                         cuda::stream_ref s,
                         const call_options& options) {
  detail::require_no_group(comm.core(), operation_kind::all_reduce_rms_norm);
  const std::array<const void*, 1> partial = {what.partial};
  const kernels::rms_norm_call call{.dtype = what.dtype,
                                    .partials = partial,
                                    .residual = what.residual,
                                    .weight = what.weight,
                                    .residual_out = what.residual,
                                    .out = what.out,
                                    .scales = what.scales,
                                    .rows = what.rows,
                                    .hidden = what.hidden,
                                    .epsilon = what.epsilon};
  require_valid(comm, call);
  comm.core().require_operable();
  if (what.rows == 0) {
    return;
  }
  detail::path_set& paths = detail::paths_of(comm.core());
  operation request{.record = {.count_elements = what.rows * what.hidden,
                               .kind = operation_kind::all_reduce_rms_norm,
                               .dtype = what.dtype,
                               .op = reduce_op::sum},
                    .in = what.partial,
                    .out = what.partial,
                    .stream = s.get(),
                    .deadline = options.deadline};
  if (comm.world_size() == 1) {
    comm.core().require_own_stream(request);
    kernels::rms_norm(paths.kernels(), call, s);
    return;
  }
  static_cast<void>(paths.kernels());  // found missing here, and not in the middle of a launch
  detail::path_launch way = detail::choose_way(
      comm.core(), request, kernels::rms_norm_staging_bytes(what.rows, what.hidden, what.dtype));
  way.norm = &call;
  request.record.path = way.way.kind;
  request.launch = detail::fused_launch_of(way.way.kind);
  request.path_state = &way;
  detail::submit_collective(comm, request);
}

}  // namespace spark_comm
