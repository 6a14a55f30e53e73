// SPDX-License-Identifier: AGPL-3.0-only
// A message as 16-byte vectors: user memory at any alignment on one side, staging slots (always
// aligned, padded to whole vectors) on the other.
#pragma once

#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/device/flags.cuh>
#include <spark_comm/kernels/device/vectors.cuh>

#include <cstdint>

namespace spark_comm::kernels::device {

/// The message of an all-reduce; vector v holds elements v * lanes and on. The mapping hangs on the
/// element type alone, so ranks with different alignments agree on it.
template <typename T>
class message {
 public:
  using vector_type = vector<T, lanes<T>>;

  __device__ message(const detail::all_reduce_parameters& p, std::uint64_t round)
      : p_(p), slot_(staging_offset(p.peers.limits, round)) {}

  __device__ std::uint64_t vectors() const { return (p_.count_elements + lanes<T> - 1) / lanes<T>; }

  __device__ vector_type load_input(std::uint64_t v) const {
    const T* const from = static_cast<const T*>(p_.input) + v * lanes<T>;
    return is_whole(v) ? vector_type::load(from) : vector_type::load_some(from, valid(v));
  }

  __device__ void store_output(std::uint64_t v, const vector_type& value) const {
    T* const to = static_cast<T*>(p_.output) + v * lanes<T>;
    if (is_whole(v)) {
      value.store(to);
    } else {
      value.store_some(to, valid(v));
    }
  }

  __device__ void stage(std::uint64_t v, const vector_type& value) const {
    *staged(p_.peers.rank, v) = value.bits;
  }

  __device__ vector_type load_staged(int rank, std::uint64_t v) const {
    return {load_peer(staged(rank, v))};
  }

  /// Everybody's vector v; World ranks, or as many as there are for 0.
  template <int World>
  struct contributions {
    static constexpr int held = World > 0 ? World : max_world;
    vector_type parts[held];
  };

  /// All loads are started before the first is used.
  template <int World>
  __device__ contributions<World> gather(std::uint64_t v) const {
    contributions<World> all;
#pragma unroll
    for (int r = 0; r < all.held; ++r) {
      if (World > 0 || r < p_.peers.limits.world) {
        all.parts[r] = r == p_.peers.rank ? load_input(v) : load_staged(r, v);
      }
    }
    return all;
  }

  /// The fp32 sum in rank order, rounded once.
  template <int World>
  __device__ vector_type sum(const contributions<World>& all) const {
    float total[lanes<T>];
    all.parts[0].to_floats(total);
#pragma unroll
    for (int r = 1; r < all.held; ++r) {
      if (World > 0 || r < p_.peers.limits.world) {
        float values[lanes<T>];
        all.parts[r].to_floats(values);
#pragma unroll
        for (int i = 0; i < lanes<T>; ++i) {
          total[i] += values[i];
        }
      }
    }
    return vector_type::from_floats(total);
  }

 private:
  __device__ bool is_whole(std::uint64_t v) const {
    return p_.is_wide != 0 && (v + 1) * lanes<T> <= p_.count_elements;
  }

  __device__ int valid(std::uint64_t v) const {
    const std::uint64_t left = p_.count_elements - v * lanes<T>;
    return left < lanes<T> ? static_cast<int>(left) : lanes<T>;
  }

  __device__ uint4* staged(int rank, std::uint64_t v) const {
    return reinterpret_cast<uint4*>(bytes_of(p_.peers.segments[rank]) + slot_) + v;
  }

  const detail::all_reduce_parameters& p_;
  std::uint64_t slot_;
};

}  // namespace spark_comm::kernels::device
