// SPDX-License-Identifier: AGPL-3.0-only
// All-reduce in two steps, for messages whose bytes count: each rank reduces one part, then all
// gather the parts. A rank reads 2 (W - 1) / W of the message in place of W - 1 times.
#include <spark_comm/kernels/device/staging.cuh>

namespace spark_comm::kernels::device {
namespace {

/// Launch, Memory, Numerics, Limits: as one_shot.
/// Sync: two `meet_peers`, stage 0 after staging and stage 1 after the reduction. Each block
/// handles
///   the same vectors of every part on all ranks, so a block waits for its twins only. A rank's sum
///   goes over its own staged part, which no peer reads before stage 1.
/// Source: own; reduce-scatter and all-gather as in Rabenseifner's algorithm.
template <typename T, int World>
__device__ void two_shot(const detail::all_reduce_parameters& p) {
  segment_header& own = header_of(p.peers.segments[p.peers.rank]);
  const std::uint64_t round = begin_round(p.peers, own.rounds);
  if (round == 0) {
    return;
  }
  const message<T> data{p, round};
  const std::uint32_t world = static_cast<std::uint32_t>(p.peers.limits.world);
  const std::uint64_t vectors = data.vectors();
  const std::uint64_t part = (vectors + world - 1) / world;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  const auto for_part = [&](std::uint32_t owner, auto body) {
    const std::uint64_t begin = owner * part;
    const std::uint64_t end = begin + part < vectors ? begin + part : vectors;
    for (std::uint64_t v = begin + first; v < end; v += step) {
      body(v);
    }
  };

  const std::uint32_t rank = static_cast<std::uint32_t>(p.peers.rank);
  for (std::uint32_t r = 0; r < world; ++r) {
    if (r != rank) {
      for_part(r, [&](std::uint64_t v) { data.stage(v, data.load_input(v)); });
    }
  }
  if (!meet_peers(p.peers, 0, round)) {
    return;
  }
  for_part(rank, [&](std::uint64_t v) {
    const auto sum = data.sum(data.template gather<World>(v));
    data.stage(v, sum);
    data.store_output(v, sum);
  });
  if (!meet_peers(p.peers, 1, round)) {
    return;
  }
  for (std::uint32_t i = 1; i < world; ++i) {
    // Each rank begins with another peer, so that the links are used evenly.
    const std::uint32_t owner = (rank + i) % world;
    for_part(owner, [&](std::uint64_t v) {
      data.store_output(v, data.load_staged(static_cast<int>(owner), v));
    });
  }
  end_round(own.rounds, round);
}

}  // namespace
}  // namespace spark_comm::kernels::device

// Names as in kernel_table.cpp: element, world (any).
#define SPARK_COMM_TWO_SHOT(name, type)                                                    \
  extern "C" __global__ void __launch_bounds__(512, 2)                                     \
      name(const __grid_constant__ spark_comm::kernels::detail::all_reduce_parameters p) { \
    spark_comm::kernels::device::two_shot<type, 0>(p);                                     \
  }
SPARK_COMM_TWO_SHOT(two_shot_bf16_n0_v0, __nv_bfloat16)
SPARK_COMM_TWO_SHOT(two_shot_fp16_n0_v0, __half)
SPARK_COMM_TWO_SHOT(two_shot_fp32_n0_v0, float)
#undef SPARK_COMM_TWO_SHOT
