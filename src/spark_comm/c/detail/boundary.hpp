// SPDX-License-Identifier: AGPL-3.0-only
// The line between the C interface and the library: exceptions become codes and error objects,
// arguments are checked before they become C++ values, structs are read and written by their size.
#pragma once

#include <spark_comm/c/types.h>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

namespace spark_comm::c {

/// The exception that is being handled, as a code, and as an object where `failure` asks for one.
[[nodiscard]] spark_comm_code take_exception(spark_comm_error** failure) noexcept;

/// Checks what one call of the interface was given. Every refusal is an `error` that names the
/// function, and an open group of this thread hears of it, so that it does not launch the rest
/// without this operation.
class arguments {
 public:
  explicit constexpr arguments(const char* function) noexcept : function_(function) {}

  /// Throws invalid_argument.
  [[noreturn]] void refuse(const std::string& message) const;

  /// `*pointer`. Throws: invalid_argument for null.
  template <typename T>
  [[nodiscard]] T& deref(T* pointer, const char* name) const {
    if (pointer == nullptr) {
      refuse(std::string{name} + " is null");
    }
    return *pointer;
  }

  /// A span of time. Throws: invalid_argument for a negative one.
  [[nodiscard]] duration limit(std::int64_t nanoseconds, const char* name) const;

  /// The same, where 0 leaves `fallback`.
  [[nodiscard]] duration limit_or(std::int64_t nanoseconds,
                                  duration fallback,
                                  const char* name) const;

  /// Throws invalid_argument unless `given` fits an int.
  [[nodiscard]] std::optional<int> optional_int(const spark_comm_optional& given,
                                                const char* name) const;

  /// A member of an enumeration by its number. Throws: invalid_argument for others.
  template <typename Enum, std::size_t Count>
  [[nodiscard]] Enum member_of(const Enum (&all)[Count],
                               std::int32_t number,
                               const char* name) const {
    const auto at = std::ranges::find_if(
        all, [number](Enum each) { return static_cast<std::int32_t>(each) == number; });
    if (at == std::ranges::end(all)) {
      refuse(std::string{name} + " " + std::to_string(number) + " is not one of spark_comm's");
    }
    return *at;
  }

  /// A struct of the caller's, all defaults for null. The caller may have been built with an older
  /// header (the fields that it lacks have their defaults) or with a newer one (what we do not know
  /// must be at its default, else not_supported). `Oldest` is the size of its first version.
  template <typename T, std::size_t Oldest = sizeof(T)>
  [[nodiscard]] T read(const T* given) const {
    T known{};
    if (given == nullptr) {
      return known;
    }
    check_struct_size(given->struct_size, Oldest);
    std::memcpy(&known, given, std::min(given->struct_size, sizeof(T)));
    if (given->struct_size > sizeof(T)) {
      check_unknown_fields(reinterpret_cast<const std::byte*>(given) + sizeof(T),
                           given->struct_size - sizeof(T));
    }
    return known;
  }

  /// Fills in a struct of the caller's as far as it reaches; what we do not know becomes zero.
  template <typename T, std::size_t Oldest = sizeof(T)>
  void write(T* to, T from, const char* name) const {
    const std::size_t bytes = deref(to, name).struct_size;
    check_struct_size(bytes, Oldest);
    from.struct_size = bytes;
    std::memcpy(to, &from, std::min(bytes, sizeof(T)));
    if (bytes > sizeof(T)) {
      std::memset(reinterpret_cast<std::byte*>(to) + sizeof(T), 0, bytes - sizeof(T));
    }
  }

 private:
  void check_struct_size(std::size_t struct_size, std::size_t oldest_bytes) const;
  void check_unknown_fields(const void* rest, std::size_t bytes) const;

  const char* function_;
};

/// Runs `body` with the checks of `function`, and lets no exception out of it.
template <typename Body>
[[nodiscard]] spark_comm_code guarded(const char* function,
                                      spark_comm_error** failure,
                                      const Body& body) noexcept {
  if (failure != nullptr) {
    *failure = nullptr;
  }
  try {
    body(arguments{function});
    return SPARK_COMM_OK;
  } catch (...) {
    return take_exception(failure);
  }
}

/// Makes a handle: `*handle` is null on failure, and what `make` gives on success.
template <typename Handle, typename Make>
[[nodiscard]] spark_comm_code created(const char* function,
                                      Handle** handle,
                                      spark_comm_error** failure,
                                      const Make& make) noexcept {
  return guarded(function, failure, [&](const arguments& check) {
    Handle*& made = check.deref(handle, "the place for the handle");
    made = nullptr;
    made = new Handle{make(check)};
  });
}

[[nodiscard]] constexpr spark_comm_progress number_of(progress answer) noexcept {
  return answer == progress::done ? SPARK_COMM_DONE : SPARK_COMM_PENDING;
}

[[nodiscard]] constexpr spark_comm_progress number_of(wait_result answer) noexcept {
  return answer == wait_result::done ? SPARK_COMM_DONE : SPARK_COMM_PENDING;
}

/// "" for null.
[[nodiscard]] inline std::string text_of(const char* text) {
  return text == nullptr ? std::string{} : std::string{text};
}

/// For names: the member, or the first number that is none.
template <typename Enum>
[[nodiscard]] constexpr Enum any_of(std::int32_t number) noexcept {
  constexpr std::int32_t last = std::numeric_limits<std::underlying_type_t<Enum>>::max();
  return static_cast<Enum>(number >= 0 && number <= last ? number : last - 1);
}

}  // namespace spark_comm::c
