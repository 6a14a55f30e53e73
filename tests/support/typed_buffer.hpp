// SPDX-License-Identifier: AGPL-3.0-only
// Elements at a chosen distance from a vector boundary, with a pattern before and after them, and
// the values that tests fill them with.
#pragma once

#include <spark_comm/core/float_types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace spark_comm::test {

inline float to_float(float value) {
  return value;
}

using spark_comm::to_float;

template <typename T>
[[nodiscard]] T from_float(float value) {
  if constexpr (std::is_same_v<T, float16>) {
    return to_float16(value);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return to_bfloat16(value);
  } else {
    return value;
  }
}

/// `count` elements, `offset` elements behind a 256-byte boundary, zero at first.
template <typename T>
class typed_buffer {
 public:
  explicit typed_buffer(std::size_t count, std::size_t offset = 0)
      : memory_(2 * guard_bytes + alignment + (count + offset) * sizeof(T), pattern),
        count_(count),
        offset_(offset) {
    void* at = memory_.data();
    std::size_t space = memory_.size();
    begin_ = static_cast<std::byte*>(std::align(alignment, 1, at, space));
    std::memset(static_cast<void*>(data()), 0, count * sizeof(T));
  }

  typed_buffer(const typed_buffer&) = delete;
  typed_buffer& operator=(const typed_buffer&) = delete;
  typed_buffer(typed_buffer&&) noexcept = default;
  typed_buffer& operator=(typed_buffer&&) noexcept = default;
  ~typed_buffer() = default;

  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(begin_ + guard_bytes) + offset_; }

  [[nodiscard]] std::size_t count() const { return count_; }

  [[nodiscard]] std::size_t offset() const { return offset_; }

  [[nodiscard]] std::span<T> elements() const { return {data(), count_}; }

  [[nodiscard]] T& operator[](std::size_t i) const { return data()[i]; }

  /// The elements with the patterns around them; starts on a 256-byte boundary.
  [[nodiscard]] std::span<std::byte> guarded_bytes() const {
    return {begin_, 2 * guard_bytes + (count_ + offset_) * sizeof(T)};
  }

  /// Where the elements start in `guarded_bytes`.
  [[nodiscard]] std::size_t first_byte() const { return guard_bytes + offset_ * sizeof(T); }

  /// Whether the bytes before and after still hold the pattern.
  [[nodiscard]] bool is_guarded() const {
    const auto intact = [](std::byte b) { return b == pattern; };
    const std::span<std::byte> all = guarded_bytes();
    return std::ranges::all_of(all.first(first_byte()), intact) &&
           std::ranges::all_of(all.subspan(first_byte() + count_ * sizeof(T)), intact);
  }

  /// Whether both hold the same bits.
  [[nodiscard]] bool equals(const typed_buffer& other) const {
    return count_ == other.count_ && std::memcmp(data(), other.data(), count_ * sizeof(T)) == 0;
  }

 private:
  static constexpr std::size_t alignment = 256;
  static constexpr std::size_t guard_bytes = 256;
  static constexpr std::byte pattern{0xa5};

  std::vector<std::byte> memory_;
  std::size_t count_;
  std::size_t offset_;
  std::byte* begin_ = nullptr;
};

/// Normally distributed values, the same for the same seed.
template <typename T>
void fill_random(const typed_buffer<T>& buffer, std::uint32_t seed, float scale = 1.0F) {
  std::mt19937 random{seed};
  std::normal_distribution<float> value{0.0F, scale};
  for (T& element : buffer.elements()) {
    element = from_float<T>(value(random));
  }
}

/// Any bits at all: infinities, NaN and subnormals among them.
template <typename T>
void fill_bits(const typed_buffer<T>& buffer, std::uint32_t seed) {
  std::mt19937 random{seed};
  for (T& element : buffer.elements()) {
    const auto bits = static_cast<std::uint32_t>(random());
    std::memcpy(static_cast<void*>(&element), &bits, sizeof element);
  }
}

template <typename T>
[[nodiscard]] typed_buffer<T> random_buffer(std::size_t count,
                                            std::uint32_t seed,
                                            std::size_t offset = 0) {
  typed_buffer<T> buffer{count, offset};
  fill_random(buffer, seed);
  return buffer;
}

}  // namespace spark_comm::test
