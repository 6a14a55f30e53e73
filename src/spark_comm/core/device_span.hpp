// SPDX-License-Identifier: AGPL-3.0-only
// Views over device memory. They own nothing and never touch what they point to.
#pragma once

#include <spark_comm/core/data_type.hpp>

#include <cstddef>
#include <type_traits>

namespace spark_comm {

/// `count_elements` elements of T at a device address. Valid as long as the memory is.
template <typename T>
struct device_span {
  T* address = nullptr;
  std::size_t count_elements = 0;

  constexpr device_span() noexcept = default;

  constexpr device_span(T* first, std::size_t elements) noexcept
      : address(first), count_elements(elements) {}

  /// A span of const elements from a span of mutable ones.
  template <typename U>
    requires std::is_same_v<const U, T>
  constexpr device_span(device_span<U> other) noexcept  // NOLINT(google-explicit-constructor)
      : address(other.address), count_elements(other.count_elements) {}

  [[nodiscard]] constexpr std::size_t size_bytes() const noexcept {
    return count_elements * sizeof(T);
  }
};

}  // namespace spark_comm
