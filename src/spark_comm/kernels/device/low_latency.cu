// SPDX-License-Identifier: AGPL-3.0-only
// All-reduce of small messages: data and flag travel in the same word, so that one store and one
// load are the whole exchange.
#include <spark_comm/kernels/device/flags.cuh>
#include <spark_comm/kernels/device/vectors.cuh>

namespace spark_comm::kernels::device {
namespace {

/// 8 bytes of data as they lie in memory.
struct line_data {
  std::uint32_t low;
  std::uint32_t high;
};

__device__ inline std::uint64_t with_flag(std::uint32_t data, std::uint32_t flag) {
  return std::uint64_t{flag} << 32U | data;
}

// Two 8-byte accesses in one instruction. Each is single-copy atomic, so its flag vouches for its
// data, and nothing stronger than relaxed is needed.
__device__ inline void store_line(void* to, line_data data, std::uint32_t flag) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to),
               "l"(with_flag(data.low, flag)),
               "l"(with_flag(data.high, flag))
               : "memory");
}

__device__ inline bool try_load_line(const void* from, std::uint32_t flag, line_data& data) {
  std::uint64_t low;
  std::uint64_t high;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(low), "=l"(high)
               : "l"(from)
               : "memory");
  data = {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high)};
  return static_cast<std::uint32_t>(low >> 32U) == flag &&
         static_cast<std::uint32_t>(high >> 32U) == flag;
}

/// Elements of a line, and how the message lies in user memory.
template <typename T>
class lines {
 public:
  static constexpr int count = static_cast<int>(line_data_bytes / sizeof(T));
  using vector_type = vector<T, count>;

  __device__ explicit lines(const detail::all_reduce_parameters& p) : p_(p) {}

  __device__ std::uint32_t used() const {
    return static_cast<std::uint32_t>((p_.count_elements + count - 1) / count);
  }

  __device__ vector_type load(std::uint32_t line) const {
    const T* const from = static_cast<const T*>(p_.input) + line * count;
    return is_whole(line) ? vector_type::load(from) : vector_type::load_some(from, valid(line));
  }

  __device__ void store(std::uint32_t line, const vector_type& value) const {
    T* const to = static_cast<T*>(p_.output) + line * count;
    if (is_whole(line)) {
      value.store(to);
    } else {
      value.store_some(to, valid(line));
    }
  }

 private:
  __device__ int valid(std::uint32_t line) const {
    const std::uint64_t left = p_.count_elements - std::uint64_t{line} * count;
    return left < count ? static_cast<int>(left) : count;
  }

  __device__ bool is_whole(std::uint32_t line) const {
    return p_.is_wide != 0 && valid(line) == count;
  }

  const detail::all_reduce_parameters& p_;
};

template <typename T>
__device__ bool reduce_line(const detail::all_reduce_parameters& p,
                            std::uint64_t round,
                            std::uint32_t line,
                            typename lines<T>::vector_type& own) {
  const std::uint32_t flag = low_latency_flag(round);
  float total[lines<T>::count];
  for (int r = 0; r < p.peers.limits.world; ++r) {
    typename lines<T>::vector_type part = own;
    if (r != p.peers.rank) {
      const std::byte* const from = bytes_of(p.peers.segments[p.peers.rank]) +
                                    low_latency_offset(p.peers.limits, round, r) +
                                    line * line_bytes;
      line_data data;
      if (!spin_until(p.peers, r, round, [&] { return try_load_line(from, flag, data); })) {
        return false;
      }
      memcpy(&part.bits, &data, sizeof data);
    }
    float values[lines<T>::count];
    part.to_floats(values);
#pragma unroll
    for (int i = 0; i < lines<T>::count; ++i) {
      total[i] = r == 0 ? values[i] : total[i] + values[i];
    }
  }
  own = lines<T>::vector_type::from_floats(total);
  return true;
}

/// Launch: 256 threads; the same grid on all ranks; ranks that share a device must fit together.
/// Memory: input and output are the rank's own, at any alignment, equal or disjoint. Lines are
///   written into the peers' segments and read from the own one.
/// Sync: data and flag are one 8-byte word, see store_line; every line is waited for by the thread
///   that reads it, bounded. A flag comes round after 2^32 - 1 rounds; in the two rounds before
///   that (one a slot) the sender writes all lines, so no line is ever that old.
/// Numerics: fp32 sum in rank order, one rounding; equal bits on all ranks.
/// Limits: count * element size up to `low_latency_bytes`; one launch at a time on a segment.
/// Source: own; the packing is that of NCCL's LL protocol.
template <typename T>
__device__ void low_latency(const detail::all_reduce_parameters& p) {
  segment_header& own = header_of(p.peers.segments[p.peers.rank]);
  const std::uint64_t round = begin_round(p.peers, own.low_latency_rounds);
  if (round == 0) {
    return;
  }
  const lines<T> message{p};
  const std::uint32_t flag = low_latency_flag(round);
  const std::uint32_t used = message.used();
  const auto capacity = static_cast<std::uint32_t>(lines_of(p.peers.limits.low_latency_bytes));
  const std::uint32_t sent = refreshes_lines(round) ? capacity : used;
  const std::uint32_t first = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t step = gridDim.x * blockDim.x;

  for (std::uint32_t line = first; line < sent; line += step) {
    line_data data{};
    if (line < used) {
      const auto value = message.load(line);
      memcpy(&data, &value.bits, sizeof data);
    }
    for (int r = 0; r < p.peers.limits.world; ++r) {
      if (r != p.peers.rank) {
        store_line(bytes_of(p.peers.segments[r]) +
                       low_latency_offset(p.peers.limits, round, p.peers.rank) + line * line_bytes,
                   data,
                   flag);
      }
    }
  }
  bool is_met = true;
  for (std::uint32_t line = first; is_met && line < used; line += step) {
    auto value = message.load(line);
    is_met = reduce_line<T>(p, round, line, value);
    if (is_met) {
      message.store(line, value);
    }
  }
  if (__syncthreads_and(static_cast<int>(is_met)) != 0) {
    end_round(own.low_latency_rounds, round);
  }
}

}  // namespace
}  // namespace spark_comm::kernels::device

// Names as in kernel_table.cpp: element, world (any).
#define SPARK_COMM_LOW_LATENCY(name, type)                                                 \
  extern "C" __global__ void __launch_bounds__(256)                                        \
      name(const __grid_constant__ spark_comm::kernels::detail::all_reduce_parameters p) { \
    spark_comm::kernels::device::low_latency<type>(p);                                     \
  }
SPARK_COMM_LOW_LATENCY(low_latency_bf16_n0_v0, __nv_bfloat16)
SPARK_COMM_LOW_LATENCY(low_latency_fp16_n0_v0, __half)
SPARK_COMM_LOW_LATENCY(low_latency_fp32_n0_v0, float)
#undef SPARK_COMM_LOW_LATENCY
