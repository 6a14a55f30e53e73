// SPDX-License-Identifier: AGPL-3.0-only
// Elements at a chosen distance from a vector boundary, with a pattern before and after them, and the
// values that tests fill them with.
#pragma once

#include <spark_comm/core/float_types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace spark_comm::test {

inline float to_float(float value) { return value; }

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

/// `count` elements, `offset` elements behind a 256-byte boundary.
template <typename T>
class typed_buffer {
 public:
  explicit typed_buffer(std::size_t count, std::size_t offset = 0)
      : memory_(guard_bytes * 2 + (count + offset) * sizeof(T) + alignment, pattern) {
    void* at = memory_.data() + guard_bytes;
    std::size_t space = memory_.size() - guard_bytes;
    std::align(alignment, 1, at, space);
    first_ = static_cast<T*>(at) + offset;
    count_ = count;
    std::memset(static_cast<void*>(first_), 0, count * sizeof(T));
  }

  typed_buffer(const typed_buffer&) = delete;
  typed_buffer& operator=(const typed_buffer&) = delete;
  typed_buffer(typed_buffer&&) noexcept = default;
  typed_buffer& operator=(typed_buffer&&) noexcept = default;
  ~typed_buffer() = default;

  [[nodiscard]] T* data() const { return first_; }

  [[nodiscard]] std::span<T> elements() const { return {first_, count_}; }

  [[nodiscard]] T& operator[](std::size_t i) const { return first_[i]; }

  /// Whether the bytes before and after still hold the pattern.
  [[nodiscard]] bool is_guarded() const {
    const auto* const begin = reinterpret_cast<const std::byte*>(first_);
    const auto* const end = reinterpret_cast<const std::byte*>(first_ + count_);
    const auto intact = [](std::byte b) { return b == pattern; };
    return std::all_of(memory_.data(), begin, intact) &&
           std::all_of(end, memory_.data() + memory_.size(), intact);
  }

  /// Whether both hold the same bits.
  [[nodiscard]] bool equals(const typed_buffer& other) const {
    return count_ == other.count_ && std::memcmp(first_, other.first_, count_ * sizeof(T)) == 0;
  }

 private:
  static constexpr std::size_t alignment = 256;
  static constexpr std::size_t guard_bytes = 64;
  static constexpr std::byte pattern{0xa5};

  std::vector<std::byte> memory_;
  T* first_ = nullptr;
  std::size_t count_ = 0;
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

template <typename T>
[[nodiscard]] typed_buffer<T> random_buffer(std::size_t count,
                                            std::uint32_t seed,
                                            std::size_t offset = 0) {
  typed_buffer<T> buffer{count, offset};
  fill_random(buffer, seed);
  return buffer;
}

}  // namespace spark_comm::test
