// SPDX-License-Identifier: AGPL-3.0-only
// Numbers and texts to bytes and back: little endian by construction, no padding, no surprises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace spark_comm::detail {

class wire_writer {
 public:
  template <typename T>
    requires std::is_integral_v<T>
  void put(T value) {
    auto bits = static_cast<std::make_unsigned_t<T>>(value);
    for (std::size_t each = 0; each < sizeof(T); ++each) {
      bytes_.push_back(static_cast<std::byte>(bits & 0xffU));
      bits = static_cast<std::make_unsigned_t<T>>(sizeof(T) > 1 ? bits >> 8U : 0);
    }
  }

  template <typename T>
    requires std::is_enum_v<T>
  void put(T value) {
    put(static_cast<std::underlying_type_t<T>>(value));
  }

  /// Cut to `most_bytes`, which must fit 16 bits.
  void put_text(std::string_view text, std::size_t most_bytes) {
    const std::string_view kept = text.substr(0, most_bytes);
    put(static_cast<std::uint16_t>(kept.size()));
    const auto raw = std::as_bytes(std::span{kept});
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }

  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what a `wire_writer` wrote. After the first failure everything is zero and `is_good`
/// false, so that one check at the end is enough.
class wire_reader {
 public:
  explicit wire_reader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

  template <typename T>
    requires std::is_integral_v<T>
  [[nodiscard]] T get() noexcept {
    if (!has(sizeof(T))) {
      return T{};
    }
    std::uint64_t value = 0;
    for (std::size_t each = 0; each < sizeof(T); ++each) {
      value |= std::to_integer<std::uint64_t>(rest_[each]) << (8U * each);
    }
    rest_ = rest_.subspan(sizeof(T));
    return static_cast<T>(value);
  }

  template <typename T>
    requires std::is_enum_v<T>
  [[nodiscard]] T get() noexcept {
    // Any number is valid here; whoever reads it requires a known one.
    // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange)
    return static_cast<T>(get<std::underlying_type_t<T>>());
  }

  [[nodiscard]] std::string get_text(std::size_t most_bytes) {
    const std::size_t length = get<std::uint16_t>();
    require(length <= most_bytes);
    if (!has(length)) {
      return {};
    }
    std::string text(length, '\0');
    for (std::size_t each = 0; each < length; ++each) {
      text[each] = static_cast<char>(std::to_integer<unsigned char>(rest_[each]));
    }
    rest_ = rest_.subspan(length);
    return text;
  }

  /// Makes the message bad unless `condition` holds.
  void require(bool condition) noexcept {
    if (!condition) {
      is_good_ = false;
      rest_ = {};
    }
  }

  [[nodiscard]] bool is_good() const noexcept { return is_good_; }

  [[nodiscard]] std::size_t rest_bytes() const noexcept { return rest_.size(); }

 private:
  [[nodiscard]] bool has(std::size_t count) noexcept {
    require(rest_.size() >= count);
    return is_good_;
  }

  std::span<const std::byte> rest_;
  bool is_good_ = true;
};

}  // namespace spark_comm::detail
