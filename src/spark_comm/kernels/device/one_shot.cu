// SPDX-License-Identifier: AGPL-3.0-only
// All-reduce in one step: every rank stages its input and reads everybody else's.
#include <spark_comm/kernels/device/staging.cuh>

namespace spark_comm::kernels::device {
namespace {

/// Launch: 512 threads; the same grid on all ranks, up to `max_exchange_blocks` blocks. Blocks of
/// one
///   rank do not wait for each other, but for their twins on the other ranks; ranks that share a
///   device must fit on it together.
/// Memory: input and output are the rank's own, at any alignment, equal or disjoint. Own segment is
///   written (data) and peers' segments are read (data) and written (flags) through peer mappings.
/// Sync: one `meet_peers` between staging and reading; see there. Reuse of a slot:
/// peer_segment.hpp. Numerics: fp32 sum in rank order, one rounding; equal bits on all ranks.
/// Limits: count * element size up to `staging_bytes`; one launch at a time on a segment.
/// Source: own; the shape is that of the custom all-reduces of TensorRT-LLM and vLLM.
template <typename T, int World>
__device__ void one_shot(const detail::all_reduce_parameters& p) {
  segment_header& own = header_of(p.peers.segments[p.peers.rank]);
  const std::uint64_t round = begin_round(p.peers, own.rounds);
  if (round == 0) {
    return;
  }
  const message<T> data{p, round};
  const std::uint64_t vectors = data.vectors();
  const std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;

  for (std::uint64_t v = first; v < vectors; v += step) {
    data.stage(v, data.load_input(v));
  }
  if (!meet_peers(p.peers, 0, round)) {
    return;
  }
  // Two ranks: two vectors at a time, so that twice as many loads are on their way. More ranks have
  // enough of them.
  constexpr bool is_paired = World == 2;
  for (std::uint64_t v = first; v < vectors; v += (is_paired ? 2 : 1) * step) {
    const auto here = data.template gather<World>(v);
    if constexpr (is_paired) {
      const bool has_next = v + step < vectors;
      const auto there = data.template gather<World>(has_next ? v + step : v);
      if (has_next) {
        data.store_output(v + step, data.sum(there));
      }
    }
    data.store_output(v, data.sum(here));
  }
  end_round(own.rounds, round);
}

}  // namespace
}  // namespace spark_comm::kernels::device

// Names as in kernel_table.cpp: element, world (2, or 0 for any).
#define SPARK_COMM_ONE_SHOT(name, type, world)                                             \
  extern "C" __global__ void __launch_bounds__(512, 2)                                     \
      name(const __grid_constant__ spark_comm::kernels::detail::all_reduce_parameters p) { \
    spark_comm::kernels::device::one_shot<type, world>(p);                                 \
  }
SPARK_COMM_ONE_SHOT(one_shot_bf16_n0_v0, __nv_bfloat16, 0)
SPARK_COMM_ONE_SHOT(one_shot_bf16_n2_v0, __nv_bfloat16, 2)
SPARK_COMM_ONE_SHOT(one_shot_fp16_n0_v0, __half, 0)
SPARK_COMM_ONE_SHOT(one_shot_fp16_n2_v0, __half, 2)
SPARK_COMM_ONE_SHOT(one_shot_fp32_n0_v0, float, 0)
SPARK_COMM_ONE_SHOT(one_shot_fp32_n2_v0, float, 2)
#undef SPARK_COMM_ONE_SHOT
