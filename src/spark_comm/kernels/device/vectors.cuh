// SPDX-License-Identifier: AGPL-3.0-only
// Elements and vectors of them in device code: conversions, loads and stores.
// Every conversion rounds to nearest even and agrees with core/float_types.hpp bit for bit.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <cstring>

namespace spark_comm::kernels::device {

__device__ inline float to_float(float value) {
  return value;
}

__device__ inline float to_float(__half value) {
  return __half2float(value);
}

__device__ inline float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

template <typename T>
__device__ T from_float(float value);

template <>
__device__ inline float from_float<float>(float value) {
  return value;
}

template <>
__device__ inline __half from_float<__half>(float value) {
  return __float2half_rn(value);
}

template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

/// The value as memory of type T would give it back.
template <typename T>
__device__ float rounded(float value) {
  return to_float(from_float<T>(value));
}

__device__ inline std::uint8_t to_e4m3(float value) {
  return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
}

/// The unsigned vector of a number of bytes: one load or store instruction.
template <int Bytes>
struct word;

template <>
struct word<2> {
  using type = std::uint16_t;
};

template <>
struct word<4> {
  using type = std::uint32_t;
};

template <>
struct word<8> {
  using type = uint2;
};

template <>
struct word<16> {
  using type = uint4;
};

/// `Count` elements as they lie in memory.
template <typename T, int Count>
struct vector {
  using word_type = typename word<static_cast<int>(sizeof(T)) * Count>::type;

  word_type bits;

  __device__ void to_floats(float* values) const {
    T elements[Count];
    memcpy(elements, &bits, sizeof bits);
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      values[i] = to_float(elements[i]);
    }
  }

  __device__ static vector from_floats(const float* values) {
    T elements[Count];
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      elements[i] = from_float<T>(values[i]);
    }
    vector result;
    memcpy(&result.bits, elements, sizeof result.bits);
    return result;
  }

  /// One access; `from` is aligned to the whole vector.
  __device__ static vector load(const T* from) {
    return {*reinterpret_cast<const word_type*>(from)};
  }

  __device__ void store(T* to) const { *reinterpret_cast<word_type*>(to) = bits; }

  /// Element by element, for any alignment; only `valid` elements are touched, the rest reads 0.
  __device__ static vector load_some(const T* from, int valid) {
    T elements[Count];
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      elements[i] = i < valid ? from[i] : from_float<T>(0.0F);
    }
    vector result;
    memcpy(&result.bits, elements, sizeof result.bits);
    return result;
  }

  __device__ void store_some(T* to, int valid) const {
    T elements[Count];
    memcpy(elements, &bits, sizeof bits);
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if (i < valid) {
        to[i] = elements[i];
      }
    }
  }
};

/// Elements of a 16-byte vector.
template <typename T>
inline constexpr int lanes = 16 / static_cast<int>(sizeof(T));

}  // namespace spark_comm::kernels::device
