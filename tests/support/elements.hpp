// SPDX-License-Identifier: AGPL-3.0-only
// Elements of any data type, written and read as doubles, and buffers of them with guards around.
#pragma once

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/float_types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

namespace spark_comm::test_support {

/// Calls `visit` with a value of the C++ type of `dtype`.
template <typename Visitor>
auto with_type(data_type dtype, Visitor visit) {
  switch (dtype) {
    case data_type::int8:        return visit(std::int8_t{});
    case data_type::uint8:       return visit(std::uint8_t{});
    case data_type::int32:       return visit(std::int32_t{});
    case data_type::uint32:      return visit(std::uint32_t{});
    case data_type::int64:       return visit(std::int64_t{});
    case data_type::uint64:      return visit(std::uint64_t{});
    case data_type::float16:     return visit(float16{});
    case data_type::float32:     return visit(float{});
    case data_type::float64:     return visit(double{});
    case data_type::bfloat16:    return visit(bfloat16{});
    case data_type::float8_e4m3: return visit(float8_e4m3{});
    case data_type::float8_e5m2: return visit(float8_e5m2{});
    case data_type::bytes:       break;
  }
  return visit(std::uint8_t{});
}

inline void convert(double from, float16& to) {
  to = to_float16(static_cast<float>(from));
}

inline void convert(double from, bfloat16& to) {
  to = to_bfloat16(static_cast<float>(from));
}

inline void convert(double from, float8_e4m3& to) {
  to = to_float8_e4m3(static_cast<float>(from));
}

inline void convert(double from, float8_e5m2& to) {
  to = to_float8_e5m2(static_cast<float>(from));
}

template <typename T>
void convert(double from, T& to) {
  to = static_cast<T>(from);
}

inline double as_double(float16 from) {
  return to_float(from);
}

inline double as_double(bfloat16 from) {
  return to_float(from);
}

inline double as_double(float8_e4m3 from) {
  return to_float(from);
}

inline double as_double(float8_e5m2 from) {
  return to_float(from);
}

template <typename T>
double as_double(T from) {
  return static_cast<double>(from);
}

/// A buffer of `count` elements, `offset` elements behind a 64-byte boundary, with a pattern before
/// and behind. The host runtime takes any memory of the process.
class element_buffer {
 public:
  element_buffer(data_type dtype, std::size_t count, std::size_t offset = 0)
      : dtype_(dtype),
        count_(count),
        memory_(2 * guard_bytes + alignment + (count + offset) * size_of(dtype), pattern) {
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data()) + guard_bytes;
    first_ = guard_bytes + (alignment - start % alignment) % alignment + offset * size_of(dtype);
  }

  [[nodiscard]] std::byte* data() noexcept { return memory_.data() + first_; }

  [[nodiscard]] const std::byte* data() const noexcept { return memory_.data() + first_; }

  /// Address of an element.
  [[nodiscard]] void* at(std::size_t element) noexcept {
    return data() + element * size_of(dtype_);
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }

  void put(std::size_t element, double value) {
    with_type(dtype_, [&](auto typed) {
      convert(value, typed);
      std::memcpy(at(element), &typed, sizeof typed);
    });
  }

  [[nodiscard]] double get(std::size_t element) const {
    return with_type(dtype_, [&](auto typed) {
      std::memcpy(&typed, data() + element * sizeof typed, sizeof typed);
      return as_double(typed);
    });
  }

  void fill(const std::function<double(std::size_t)>& value) {
    for (std::size_t i = 0; i < count_; ++i) {
      put(i, value(i));
    }
  }

  /// Where the elements first differ from `expected`; `count` when they do not.
  [[nodiscard]] std::size_t first_difference(
      const std::function<double(std::size_t)>& expected) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (get(i) != expected(i)) {
        return i;
      }
    }
    return count_;
  }

  /// Whether the bytes around the elements are as they were.
  [[nodiscard]] bool is_guarded() const {
    const auto intact = [](std::byte b) { return b == pattern; };
    const std::span<const std::byte> all{memory_};
    return std::ranges::all_of(all.first(first_), intact) &&
           std::ranges::all_of(all.subspan(first_ + count_ * size_of(dtype_)), intact);
  }

 private:
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t guard_bytes = 64;
  static constexpr std::byte pattern{0xa5};

  data_type dtype_;
  std::size_t count_;
  std::vector<std::byte> memory_;
  std::size_t first_ = 0;
};

}  // namespace spark_comm::test_support
