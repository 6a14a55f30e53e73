// SPDX-License-Identifier: AGPL-3.0-only
// One row of sum + residual + RMSNorm, by one block. The sum comes from a function, so that the
// same code follows a receive buffer, a peer's memory, or nothing.
#pragma once

#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/device/reduce.cuh>
#include <spark_comm/kernels/device/vectors.cuh>

#include <cstdint>

namespace spark_comm::kernels::device {

inline constexpr int chunk_elements = detail::chunk_elements;

/// The elements of a row that a thread handles together, as they lie in memory.
template <typename T>
struct chunk {
  static constexpr int parts_count = chunk_elements / lanes<T>;

  vector<T, lanes<T>> parts[parts_count];

  /// Wide: 16-byte loads of a whole chunk. Else the first `valid` elements, at any alignment.
  __device__ static chunk load(const T* from, bool is_wide, int valid) {
    chunk result;
#pragma unroll
    for (int i = 0; i < parts_count; ++i) {
      const T* const part = from + i * lanes<T>;
      result.parts[i] = is_wide ? vector<T, lanes<T>>::load(part)
                                : vector<T, lanes<T>>::load_some(part, valid - i * lanes<T>);
    }
    return result;
  }

  __device__ void store(T* to, bool is_wide, int valid) const {
#pragma unroll
    for (int i = 0; i < parts_count; ++i) {
      T* const part = to + i * lanes<T>;
      if (is_wide) {
        parts[i].store(part);
      } else {
        parts[i].store_some(part, valid - i * lanes<T>);
      }
    }
  }

  __device__ void to_floats(float (&values)[chunk_elements]) const {
#pragma unroll
    for (int i = 0; i < parts_count; ++i) {
      parts[i].to_floats(values + i * lanes<T>);
    }
  }

  __device__ static chunk from_floats(const float (&values)[chunk_elements]) {
    chunk result;
#pragma unroll
    for (int i = 0; i < parts_count; ++i) {
      result.parts[i] = vector<T, lanes<T>>::from_floats(values + i * lanes<T>);
    }
    return result;
  }
};

/// Shared memory of a row.
struct row_scratch {
  float squares[warp_lanes];
  float largest[warp_lanes];
};

/// Held: chunks of the row that each thread keeps in registers; 0 reads residual_out again.
///
/// Numerics: s = round(round(sum) + residual) is stored as residual_out, and the norm is taken of
///   that rounded s: the same bits as an all-reduce, an add and a norm in three kernels. The
///   squares are summed in fp32 in the order of reduce.cuh; the rest is round((s * (1 / sqrt(mean +
///   epsilon))) * weight), each step rounded to fp32. With scales, the rounded result is divided by
///   scale = (largest magnitude) / 448 and rounded to e4m3.
template <typename T, int Held>
class row_norm {
 public:
  __device__ row_norm(const detail::rms_norm_parameters& p, std::uint64_t row, row_scratch& scratch)
      : p_(p),
        scratch_(scratch),
        row_(row),
        chunks_((p.hidden + chunk_elements - 1) / chunk_elements) {}

  /// `sum(c)` gives chunk c of this row, summed over the ranks, in fp32: void(c, float (&)[8]).
  template <typename Sum>
  __device__ void run(Sum sum) {
    float slots[chunk_elements] = {};
    for_each_chunk([&](std::uint32_t c, int k) {
      float x[chunk_elements];
      add_residual(c, sum, x);
#pragma unroll
      for (int i = 0; i < chunk_elements; ++i) {
        slots[i] += x[i] * x[i];
        hold(k, i, x[i]);
      }
    });
    chunk<T> weights[held_count];
    if constexpr (has_early_weights) {  // on their way while the block adds up
      for_each_chunk([&](std::uint32_t c, int k) { weights[k] = load(p_.weight, 0, c); });
    }
    const float squares = combine_block(add_slots(slots), scratch_.squares, add_values{});
    const float mean = __fdiv_rn(squares, static_cast<float>(p_.hidden));
    inverse_ = __fdiv_rn(1.0F, __fsqrt_rn(mean + p_.epsilon));
    if (p_.scales == nullptr) {
      for_each_chunk([&](std::uint32_t c, int k) {
        float y[chunk_elements];
        normalise(c, k, weights, y);
        chunk<T>::from_floats(y).store(address<T>(p_.out, row_, c), wide(), valid(c));
      });
    } else {
      quantise(weights);
    }
  }

 private:
  static constexpr int held_count = Held > 0 ? Held : 1;
  // Two chunks of fp32 weights beside two of values would not fit 64 registers.
  static constexpr bool has_early_weights = Held == 1 || (Held == 2 && sizeof(T) == 2);

  /// Calls with (chunk, index among the held ones); the second is 0 when nothing is held.
  template <typename Body>
  __device__ void for_each_chunk(Body body) {
    if constexpr (Held > 0) {
#pragma unroll
      for (int k = 0; k < Held; ++k) {
        const std::uint32_t c = threadIdx.x + static_cast<std::uint32_t>(k) * blockDim.x;
        if (c < chunks_) {
          body(c, k);
        }
      }
    } else {
      for (std::uint32_t c = threadIdx.x; c < chunks_; c += blockDim.x) {
        body(c, 0);
      }
    }
  }

  template <typename Sum>
  __device__ void add_residual(std::uint32_t c, Sum& sum, float (&x)[chunk_elements]) {
    const chunk<T> residual = load(p_.residual, row_, c);
    sum(c, x);
    float r[chunk_elements];
    residual.to_floats(r);
#pragma unroll
    for (int i = 0; i < chunk_elements; ++i) {
      x[i] = rounded<T>(rounded<T>(x[i]) + r[i]);
    }
    chunk<T>::from_floats(x).store(address<T>(p_.residual_out, row_, c), wide(), valid(c));
  }

  __device__ void normalise(std::uint32_t c,
                            int k,
                            const chunk<T> (&weights)[held_count],
                            float (&y)[chunk_elements]) {
    float w[chunk_elements];
    if constexpr (has_early_weights) {
      weights[k].to_floats(w);
    } else {
      load(p_.weight, 0, c).to_floats(w);
    }
    if constexpr (Held > 0) {
#pragma unroll
      for (int i = 0; i < chunk_elements; ++i) {
        y[i] = held_[k][i];
      }
    } else {
      load(p_.residual_out, row_, c).to_floats(y);  // this thread's own stores
    }
#pragma unroll
    for (int i = 0; i < chunk_elements; ++i) {
      y[i] = rounded<T>(y[i] * inverse_ * w[i]);
    }
  }

  __device__ void quantise(const chunk<T> (&weights)[held_count]) {
    float largest = 0.0F;
    for_each_chunk([&](std::uint32_t c, int k) {
      float y[chunk_elements];
      normalise(c, k, weights, y);
#pragma unroll
      for (int i = 0; i < chunk_elements; ++i) {
        largest = fmaxf(largest, i < valid(c) ? fabsf(y[i]) : 0.0F);
      }
    });
    largest = combine_block(largest, scratch_.largest, larger_value{});
    const float ratio = __fdiv_rn(largest, 448.0F);
    const float scale = ratio > 0.0F ? ratio : 1.0F;  // a row of zeros stays zeros
    if (threadIdx.x == 0) {
      p_.scales[row_] = scale;
    }
    for_each_chunk([&](std::uint32_t c, int k) {
      float y[chunk_elements];
      normalise(c, k, weights, y);
      std::uint8_t q[chunk_elements];
#pragma unroll
      for (int i = 0; i < chunk_elements; ++i) {
        q[i] = to_e4m3(__fdiv_rn(y[i], scale));
      }
      vector<std::uint8_t, chunk_elements> packed;
      memcpy(&packed.bits, q, sizeof q);
      std::uint8_t* const to = address<std::uint8_t>(p_.out, row_, c);
      if (wide()) {
        packed.store(to);
      } else {
        packed.store_some(to, valid(c));
      }
    });
  }

  __device__ bool wide() const { return p_.is_wide != 0; }

  __device__ int valid(std::uint32_t c) const {
    const std::uint64_t left = p_.hidden - std::uint64_t{c} * chunk_elements;
    return left < chunk_elements ? static_cast<int>(left) : chunk_elements;
  }

  template <typename E>
  __device__ E* address(void* base, std::uint64_t row, std::uint32_t c) const {
    return static_cast<E*>(base) + row * p_.hidden + std::uint64_t{c} * chunk_elements;
  }

  __device__ chunk<T> load(const void* base, std::uint64_t row, std::uint32_t c) const {
    const T* const from =
        static_cast<const T*>(base) + row * p_.hidden + std::uint64_t{c} * chunk_elements;
    return chunk<T>::load(from, wide(), valid(c));
  }

  __device__ void hold(int k, int i, float value) {
    if constexpr (Held > 0) {
      held_[k][i] = value;
    }
  }

  const detail::rms_norm_parameters& p_;
  row_scratch& scratch_;
  std::uint64_t row_;
  std::uint32_t chunks_;
  float inverse_ = 0.0F;
  float held_[held_count][chunk_elements];
};

}  // namespace spark_comm::kernels::device
