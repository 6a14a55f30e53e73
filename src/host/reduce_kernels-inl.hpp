// SPDX-License-Identifier: AGPL-3.0-only
// The loops of reductions, compiled once for each SIMD target by reduce.cpp. Conversions of the
// small floats are integer arithmetic, so that their bits do not depend on what a target's own
// instructions do with NaN, denormals or ties.

// Included once for each target, hence no #pragma once.
#if defined(SPARK_COMM_HOST_REDUCE_KERNELS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARK_COMM_HOST_REDUCE_KERNELS_INL_HPP
#undef SPARK_COMM_HOST_REDUCE_KERNELS_INL_HPP
#else
#define SPARK_COMM_HOST_REDUCE_KERNELS_INL_HPP
#endif

#include "reduce.hpp"

#include <cstddef>
#include <cstdint>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();

namespace spark_comm::host {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A float of at most 16 bits in bits of its own: how it becomes a float32 and back.
template <int ExponentBits, int MantissaBits, bool HasInfinity>
struct small_float {
  static constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  static constexpr int shift = 23 - MantissaBits;
  static constexpr std::uint32_t magnitude_mask = (1U << (ExponentBits + MantissaBits)) - 1;
  static constexpr std::uint32_t infinity = ((1U << ExponentBits) - 1) << MantissaBits;
  static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - bias) << 23;
  static constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(128 - bias) << 23;
  // Adding it leaves a subnormal's steps in the low bits, rounded to nearest even by the adder.
  static constexpr std::uint32_t subnormal_magic =
      static_cast<std::uint32_t>(127 - bias + shift + 1) << 23;
  // fp16 overflows to infinity; the fp8 formats saturate at their largest number.
  static constexpr std::uint32_t nan = magnitude_mask;
  static constexpr std::uint32_t largest = ExponentBits + MantissaBits > 8
                                               ? infinity
                                               : (HasInfinity ? infinity - 1 : nan - 1);

  template <class DU>
  static HWY_INLINE hn::Vec<hn::RebindToFloat<DU>> widen(DU du, hn::Vec<DU> bits) {
    const hn::RebindToFloat<DU> df;
    const hn::RebindToSigned<DU> di;
    const auto magnitude = hn::And(bits, hn::Set(du, magnitude_mask));
    const auto sign = hn::ShiftLeft<31 - ExponentBits - MantissaBits>(
        hn::AndNot(hn::Set(du, magnitude_mask), bits));
    auto wide = hn::Add(hn::ShiftLeft<shift>(magnitude), hn::Set(du, rebias));
    // Below the smallest normal a value is its mantissa counted in steps; the product is exact.
    const std::uint32_t step = static_cast<std::uint32_t>(127 + 1 - bias - MantissaBits) << 23;
    const auto subnormal =
        hn::Mul(hn::ConvertTo(df, hn::BitCast(di, magnitude)), hn::BitCast(df, hn::Set(du, step)));
    wide = hn::IfThenElse(
        hn::Lt(magnitude, hn::Set(du, 1U << MantissaBits)), hn::BitCast(du, subnormal), wide);
    wide = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, (HasInfinity ? infinity : nan) - 1)),
                          hn::Or(wide, hn::Set(du, 0x7f800000U)),
                          wide);
    return hn::BitCast(df, hn::Or(wide, sign));
  }

  template <class DF>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<DF>> narrow(DF df, hn::Vec<DF> value) {
    const hn::RebindToUnsigned<DF> du;
    const auto bits = hn::BitCast(du, value);
    const auto absolute = hn::And(bits, hn::Set(du, 0x7fffffffU));
    const auto sign = hn::ShiftRight<31 - ExponentBits - MantissaBits>(hn::Xor(bits, absolute));
    const auto odd = hn::And(hn::ShiftRight<shift>(absolute), hn::Set(du, 1U));
    const auto rounded = hn::Add(absolute, hn::Add(odd, hn::Set(du, (1U << (shift - 1)) - 1)));
    const auto normal = hn::ShiftRight<shift>(hn::Sub(rounded, hn::Set(du, rebias)));
    const auto magic = hn::Set(du, subnormal_magic);
    const auto subnormal =
        hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(df, absolute), hn::BitCast(df, magic))), magic);
    const auto is_subnormal = hn::Lt(absolute, hn::Set(du, smallest_normal));
    auto narrow = hn::IfThenElse(is_subnormal, subnormal, normal);
    narrow = hn::Or(hn::Min(narrow, hn::Set(du, largest)), sign);
    const auto is_nan = hn::Gt(absolute, hn::Set(du, 0x7f800000U));
    return hn::IfThenElse(is_nan, hn::Set(du, nan), narrow);
  }
};

struct brain_float {
  template <class DU>
  static HWY_INLINE hn::Vec<hn::RebindToFloat<DU>> widen(DU /*du*/, hn::Vec<DU> bits) {
    return hn::BitCast(hn::RebindToFloat<DU>(), hn::ShiftLeft<16>(bits));
  }

  template <class DF>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<DF>> narrow(DF /*df*/, hn::Vec<DF> value) {
    const hn::RebindToUnsigned<DF> du;
    const auto bits = hn::BitCast(du, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffU))));
    return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), hn::Set(du, 0x7fffU), rounded);
  }
};

// How elements of memory become lanes of an accumulator. `stored` is the type in memory.
template <typename Stored, class Format>
struct float_elements {
  using lane = float;
  using stored = Stored;

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D /*d*/, const stored* from) {
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<stored, D> ds;
    return Format::widen(du, hn::PromoteTo(du, hn::LoadU(ds, from)));
  }

  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> value, stored* to) {
    const hn::RebindToSigned<D> di;
    const hn::Rebind<stored, D> ds;
    hn::StoreU(hn::DemoteTo(ds, hn::BitCast(di, Format::narrow(d, value))), ds, to);
  }
};

template <typename T>
struct own_elements {
  using lane = T;
  using stored = T;

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const T* from) {
    return hn::LoadU(d, from);
  }

  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> value, T* to) {
    if constexpr (hwy::IsFloat<T>()) {
      // One NaN for all targets: which operand's payload survives an addition differs.
      const hn::RebindToUnsigned<D> du;
      using bits = hn::TFromD<decltype(du)>;
      constexpr bits canonical = sizeof(T) == 4 ? static_cast<bits>(0x7fffffffU)
                                                : static_cast<bits>(0x7fffffffffffffffULL);
      value = hn::IfThenElse(hn::IsNaN(value), hn::BitCast(d, hn::Set(du, canonical)), value);
    }
    hn::StoreU(value, d, to);
  }
};

// 8-bit integers accumulate in 32 bits; the low byte is what wrapping would have left.
template <typename T>
struct byte_elements {
  using lane = std::int32_t;
  using stored = T;

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const T* from) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), from));
  }

  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> value, T* to) {
    const hn::Rebind<std::uint8_t, D> db;
    hn::StoreU(hn::DemoteTo(db, hn::And(value, hn::Set(d, 0xff))),
               db,
               reinterpret_cast<std::uint8_t*>(to));
  }
};

template <combine How, class V>
HWY_INLINE V combine_lanes(V left, V right) {
  if constexpr (How == combine::prod) {
    return hn::Mul(left, right);
  } else if constexpr (How == combine::max || How == combine::min) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      const auto better = How == combine::max ? hn::Lt(left, right) : hn::Lt(right, left);
      return hn::IfThenElse(hn::Or(better, hn::IsNaN(left)), right, left);
    } else {
      return How == combine::max ? hn::Max(left, right) : hn::Min(left, right);
    }
  } else {
    return hn::Add(left, right);
  }
}

template <combine How, class Elements, class D>
HWY_INLINE void reduce_lanes(D d,
                             hn::Vec<D> scale,
                             const std::byte* const* inputs,
                             std::size_t input_count,
                             std::byte* out,
                             std::size_t first) {
  using stored = typename Elements::stored;
  const auto load = [&](std::size_t rank) HWY_ATTR {
    const auto value = Elements::load(d, reinterpret_cast<const stored*>(inputs[rank]) + first);
    if constexpr (How == combine::scaled_sum) {
      return hn::Mul(value, scale);
    } else {
      return value;
    }
  };
  auto total = load(0);
  for (std::size_t rank = 1; rank < input_count; ++rank) {
    total = combine_lanes<How>(total, load(rank));
  }
  Elements::store(d, total, reinterpret_cast<stored*>(out) + first);
}

template <combine How, class Elements>
void reduce_all(typename Elements::lane scale,
                const std::byte* const* inputs,
                std::size_t input_count,
                std::byte* out,
                std::size_t elements) {
  using lane = typename Elements::lane;
  const hn::ScalableTag<lane> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  const auto scales = hn::Set(d, scale);
  for (; i + lanes <= elements; i += lanes) {
    reduce_lanes<How, Elements>(d, scales, inputs, input_count, out, i);
  }
  // The rest one by one, by the same operations, so that a tail has the bits of a full vector.
  const hn::CappedTag<lane, 1> one;
  const auto single = hn::Set(one, scale);
  for (; i < elements; ++i) {
    reduce_lanes<How, Elements>(one, single, inputs, input_count, out, i);
  }
}

template <class Elements>
void reduce_by(combine how,
               typename Elements::lane scale,
               const std::byte* const* inputs,
               std::size_t count,
               std::byte* out,
               std::size_t elements) {
  switch (how) {
    case combine::integer_average:
    case combine::sum:
      return reduce_all<combine::sum, Elements>(scale, inputs, count, out, elements);
    case combine::prod:
      return reduce_all<combine::prod, Elements>(scale, inputs, count, out, elements);
    case combine::max:
      return reduce_all<combine::max, Elements>(scale, inputs, count, out, elements);
    case combine::min:
      return reduce_all<combine::min, Elements>(scale, inputs, count, out, elements);
    case combine::scaled_sum:
      return reduce_all<combine::scaled_sum, Elements>(scale, inputs, count, out, elements);
  }
}

using half_elements = float_elements<std::uint16_t, small_float<5, 10, true>>;
using brain_elements = float_elements<std::uint16_t, brain_float>;
using e4m3_elements = float_elements<std::uint8_t, small_float<4, 3, false>>;
using e5m2_elements = float_elements<std::uint8_t, small_float<5, 2, true>>;

void reduce_any(const reduction& r,
                const std::byte* const* inputs,
                std::size_t count,
                std::byte* out,
                std::size_t elements) {
  const std::uint64_t whole = r.scale_integer;
  const auto as_i32 = static_cast<std::int32_t>(whole);
  switch (r.dtype) {
    case data_type::int8:
      return reduce_by<byte_elements<std::int8_t>>(r.how, as_i32, inputs, count, out, elements);
    case data_type::uint8:
      return reduce_by<byte_elements<std::uint8_t>>(r.how, as_i32, inputs, count, out, elements);
    case data_type::int32:
      return reduce_by<own_elements<std::int32_t>>(r.how, as_i32, inputs, count, out, elements);
    case data_type::uint32:
      return reduce_by<own_elements<std::uint32_t>>(
          r.how, static_cast<std::uint32_t>(whole), inputs, count, out, elements);
    case data_type::int64:
      return reduce_by<own_elements<std::int64_t>>(
          r.how, static_cast<std::int64_t>(whole), inputs, count, out, elements);
    case data_type::uint64:
      return reduce_by<own_elements<std::uint64_t>>(r.how, whole, inputs, count, out, elements);
    case data_type::float16:
      return reduce_by<half_elements>(r.how, r.scale_f32, inputs, count, out, elements);
    case data_type::bfloat16:
      return reduce_by<brain_elements>(r.how, r.scale_f32, inputs, count, out, elements);
    case data_type::float8_e4m3:
      return reduce_by<e4m3_elements>(r.how, r.scale_f32, inputs, count, out, elements);
    case data_type::float8_e5m2:
      return reduce_by<e5m2_elements>(r.how, r.scale_f32, inputs, count, out, elements);
    case data_type::float32:
      return reduce_by<own_elements<float>>(r.how, r.scale_f32, inputs, count, out, elements);
    case data_type::float64:
      return reduce_by<own_elements<double>>(r.how, r.scale_f64, inputs, count, out, elements);
    case data_type::bytes: return;
  }
}

template <class Elements>
float widen_one(const void* element) {
  const hn::CappedTag<float, 1> one;
  return hn::GetLane(Elements::load(one, static_cast<const typename Elements::stored*>(element)));
}

float widen_element(data_type dtype, const void* element) {
  switch (dtype) {
    case data_type::float16:     return widen_one<half_elements>(element);
    case data_type::bfloat16:    return widen_one<brain_elements>(element);
    case data_type::float8_e4m3: return widen_one<e4m3_elements>(element);
    case data_type::float8_e5m2: return widen_one<e5m2_elements>(element);
    case data_type::float32:     return *static_cast<const float*>(element);
    case data_type::int8:
    case data_type::uint8:
    case data_type::int32:
    case data_type::uint32:
    case data_type::int64:
    case data_type::uint64:
    case data_type::float64:
    case data_type::bytes:       break;
  }
  return 0.0F;
}

template <class Elements>
float round_one(float value) {
  const hn::CappedTag<float, 1> one;
  typename Elements::stored element{};
  Elements::store(one, hn::Set(one, value), &element);
  return widen_one<Elements>(&element);
}

// `value` rounded to the element type; itself for the types that are no small floats.
float round_to_element(data_type dtype, float value) {
  switch (dtype) {
    case data_type::float16:     return round_one<half_elements>(value);
    case data_type::bfloat16:    return round_one<brain_elements>(value);
    case data_type::float8_e4m3: return round_one<e4m3_elements>(value);
    case data_type::float8_e5m2: return round_one<e5m2_elements>(value);
    case data_type::float32:
    case data_type::int8:
    case data_type::uint8:
    case data_type::int32:
    case data_type::uint32:
    case data_type::int64:
    case data_type::uint64:
    case data_type::float64:
    case data_type::bytes:       break;
  }
  return value;
}

}  // namespace HWY_NAMESPACE
}  // namespace spark_comm::host

HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
