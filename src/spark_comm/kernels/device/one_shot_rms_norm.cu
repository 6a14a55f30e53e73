// SPDX-License-Identifier: AGPL-3.0-only
// One-shot all-reduce of rows, with residual add and RMSNorm (and fp8 quantisation) on top.
#include <spark_comm/kernels/device/flags.cuh>
#include <spark_comm/kernels/device/row_norm.cuh>

namespace spark_comm::kernels::device {
namespace {

/// Rows in staging start on a chunk, whatever the hidden size.
__device__ inline std::uint64_t chunks_of_row(const detail::rms_norm_parameters& norm) {
  return (norm.hidden + chunk_elements - 1) / chunk_elements;
}

template <typename T>
struct staged_rows {
  const detail::all_reduce_rms_norm_parameters& p;
  std::uint64_t slot;

  __device__ uint4* at(int rank, std::uint64_t row, std::uint32_t c) const {
    const std::uint64_t part = (row * chunks_of_row(p.norm) + c) * chunk<T>::parts_count;
    return reinterpret_cast<uint4*>(bytes_of(p.peers.segments[rank]) + slot) + part;
  }

  __device__ chunk<T> load_own(std::uint64_t row, std::uint32_t c) const {
    const std::uint64_t in_row = std::uint64_t{c} * chunk_elements;
    const std::uint64_t left = p.norm.hidden - in_row;
    const int valid = left < chunk_elements ? static_cast<int>(left) : chunk_elements;
    const T* const from = static_cast<const T*>(p.norm.partials[0]) + row * p.norm.hidden + in_row;
    return chunk<T>::load(from, p.norm.is_wide != 0, valid);
  }

  __device__ void stage(std::uint64_t row, std::uint32_t c) const {
    const chunk<T> own = load_own(row, c);
#pragma unroll
    for (int i = 0; i < chunk<T>::parts_count; ++i) {
      at(p.peers.rank, row, c)[i] = own.parts[i].bits;
    }
  }

  __device__ chunk<T> load(int rank, std::uint64_t row, std::uint32_t c) const {
    if (rank == p.peers.rank) {
      return load_own(row, c);
    }
    chunk<T> result;
#pragma unroll
    for (int i = 0; i < chunk<T>::parts_count; ++i) {
      result.parts[i].bits = load_peer(at(rank, row, c) + i);
    }
    return result;
  }
};

/// Launch: the same grid on all ranks, min(rows, `max_exchange_blocks`); block =
/// `norm_shape(hidden)`;
///   256 bytes of static shared memory. Ranks that share a device must fit on it together.
/// Memory: as rms_norm, and the segments as in one_shot; `partials[0]` is the rank's own input.
/// Sync: one `meet_peers` between staging all rows of the block and reading the peers' rows.
/// Numerics: the bits of one_shot followed by rms_norm with one partial; equal on all ranks if
///   residual and weight are.
/// Limits: rows * hidden, padded to whole chunks a row, times the element size up to
///   `staging_bytes`; one launch at a time on a segment.
/// Source: own.
template <typename T, int World, int Held>
__device__ void one_shot_rms_norm(const detail::all_reduce_rms_norm_parameters& p) {
  __shared__ row_scratch scratch;
  segment_header& own = header_of(p.peers.segments[p.peers.rank]);
  const std::uint64_t round = begin_round(p.peers, own.rounds);
  if (round == 0) {
    return;
  }
  const staged_rows<T> data{p, staging_offset(p.peers.limits, round)};
  const auto chunks = static_cast<std::uint32_t>(chunks_of_row(p.norm));
  for (std::uint64_t row = blockIdx.x; row < p.norm.rows; row += gridDim.x) {
    for (std::uint32_t c = threadIdx.x; c < chunks; c += blockDim.x) {
      data.stage(row, c);
    }
  }
  if (!meet_peers(p.peers, 0, round)) {
    return;
  }
  const int world = World > 0 ? World : p.peers.limits.world;
  for (std::uint64_t row = blockIdx.x; row < p.norm.rows; row += gridDim.x) {
    row_norm<T, Held>{p.norm, row, scratch}.run([&](std::uint32_t c, float(&sum)[chunk_elements]) {
      const chunk<T> first = data.load(0, row, c);
      chunk<T> next = data.load(1, row, c);  // both on their way before either is used
      first.to_floats(sum);
      for (int r = 1; r < world; ++r) {
        if (r > 1) {
          next = data.load(r, row, c);
        }
        float values[chunk_elements];
        next.to_floats(values);
#pragma unroll
        for (int i = 0; i < chunk_elements; ++i) {
          sum[i] += values[i];
        }
      }
    });
    __syncthreads();  // the next row uses the scratch again
  }
  end_round(own.rounds, round);
}

}  // namespace
}  // namespace spark_comm::kernels::device

// Names as in kernel_table.cpp: element, world (2, or 0 for any), chunks held (1, 2, 0).
#define SPARK_COMM_FUSED(name, type, world, held, threads)                                     \
  extern "C" __global__ void __launch_bounds__(threads) name(                                  \
      const __grid_constant__ spark_comm::kernels::detail::all_reduce_rms_norm_parameters p) { \
    spark_comm::kernels::device::one_shot_rms_norm<type, world, held>(p);                      \
  }
#define SPARK_COMM_FUSED_ALL(element, type)                               \
  SPARK_COMM_FUSED(one_shot_rms_norm_##element##_n0_v0, type, 0, 1, 512)  \
  SPARK_COMM_FUSED(one_shot_rms_norm_##element##_n0_v1, type, 0, 2, 1024) \
  SPARK_COMM_FUSED(one_shot_rms_norm_##element##_n0_v2, type, 0, 0, 1024) \
  SPARK_COMM_FUSED(one_shot_rms_norm_##element##_n2_v0, type, 2, 1, 512)  \
  SPARK_COMM_FUSED(one_shot_rms_norm_##element##_n2_v1, type, 2, 2, 1024) \
  SPARK_COMM_FUSED(one_shot_rms_norm_##element##_n2_v2, type, 2, 0, 1024)
SPARK_COMM_FUSED_ALL(bf16, __nv_bfloat16)
SPARK_COMM_FUSED_ALL(fp16, __half)
SPARK_COMM_FUSED_ALL(fp32, float)
#undef SPARK_COMM_FUSED_ALL
#undef SPARK_COMM_FUSED
