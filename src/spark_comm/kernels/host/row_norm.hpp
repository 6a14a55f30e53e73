// SPDX-License-Identifier: AGPL-3.0-only
// One row of sum + residual + RMSNorm: the twin of device/row_norm.cuh, with the same order of
// operations and the same roundings, so that both give the same bits.
#pragma once

#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/host/elements.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spark_comm::kernels::host {

inline constexpr std::size_t most_threads = 1024;
inline constexpr std::size_t most_slots = most_threads * detail::chunk_elements;

/// Adds up as a block of whole warps does: the slots of each thread, then its warp's lanes, then
/// the warps, each by halving. `slots` is used up.
[[nodiscard]] float combine_slots(std::span<float> slots) noexcept;

/// 1 / sqrt(mean + epsilon), each step rounded to fp32.
[[nodiscard]] float inverse_rms(float squares, std::uint64_t hidden, float epsilon) noexcept;

/// The fp8 scale of a row whose largest magnitude is `largest`.
[[nodiscard]] float fp8_scale(float largest) noexcept;

/// `threads` is the block size of the device kernel, on which the order of the sum hangs.
/// `sum(at, sums)` gives the fp32 sums over the ranks of the row's elements from `at` on.
template <typename T, typename Sum>
class row_norm {
 public:
  row_norm(const detail::rms_norm_parameters& p, std::uint64_t row, std::size_t threads, Sum sum)
      : p_(p), row_(row), step_(threads * detail::chunk_elements), sum_(sum) {}

  void run() {
    inverse_ = inverse_rms(add_residual(), p_.hidden, p_.epsilon);
    if (p_.scales == nullptr) {
      T* const out = static_cast<T*>(p_.out) + row_ * p_.hidden;
      for (std::size_t i = 0; i < p_.hidden; ++i) {
        out[i] = encode<T>(unrounded(i));
      }
    } else {
      quantise();
    }
  }

 private:
  /// Stores residual_out; returns the sum of its squares.
  float add_residual() {
    float slots[most_slots] = {};
    float sums[most_slots];
    const T* const residual = static_cast<const T*>(p_.residual) + row_ * p_.hidden;
    T* const residual_out = static_cast<T*>(p_.residual_out) + row_ * p_.hidden;
    for (std::size_t at = 0; at < p_.hidden; at += step_) {
      const std::size_t length = std::min<std::size_t>(step_, p_.hidden - at);
      sum_(at, std::span<float>{sums, length});
      for (std::size_t i = 0; i < length; ++i) {
        const T s = encode<T>(rounded<T>(sums[i]) + decode(residual[at + i]));
        residual_out[at + i] = s;
        slots[i] += decode(s) * decode(s);
      }
    }
    return combine_slots({slots, step_});
  }

  [[nodiscard]] float unrounded(std::size_t i) const {
    const float s = decode(static_cast<const T*>(p_.residual_out)[row_ * p_.hidden + i]);
    return s * inverse_ * decode(static_cast<const T*>(p_.weight)[i]);
  }

  void quantise() {
    float largest = 0.0F;
    for (std::size_t i = 0; i < p_.hidden; ++i) {
      const float magnitude = std::fabs(rounded<T>(unrounded(i)));
      largest = magnitude > largest ? magnitude : largest;  // a NaN is passed over
    }
    const float scale = fp8_scale(largest);
    p_.scales[row_] = scale;
    float8_e4m3* const out = static_cast<float8_e4m3*>(p_.out) + row_ * p_.hidden;
    for (std::size_t i = 0; i < p_.hidden; ++i) {
      out[i] = encode<float8_e4m3>(rounded<T>(unrounded(i)) / scale);
    }
  }

  const detail::rms_norm_parameters& p_;
  std::uint64_t row_;
  std::size_t step_;
  Sum sum_;
  float inverse_ = 0.0F;
};

}  // namespace spark_comm::kernels::host
