// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/c/detail/handles.hpp>
#include <spark_comm/c/types.h>
#include <spark_comm/comm/detail/group_context.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>

namespace spark_comm::c {
namespace {

// Larger than any version of a struct will be: a size beyond it was never set.
constexpr std::size_t largest_struct_bytes = 4096;

spark_comm_code keep(spark_comm_error** failure, const error& cause) {
  const auto code = static_cast<spark_comm_code>(cause.kind());
  if (failure != nullptr) {
    try {
      *failure = new spark_comm_error{cause};
    } catch (const std::bad_alloc&) {
      *failure = nullptr;  // the code says it
    }
  }
  return code;
}

}  // namespace

spark_comm_code take_exception(spark_comm_error** failure) noexcept {
  try {
    try {
      throw;
    } catch (const error& cause) {
      return keep(failure, cause);
    } catch (const std::bad_alloc&) {
      return keep(failure, error{errc::out_of_memory, "host memory has run out"});
    } catch (const std::exception& cause) {
      return keep(failure, error{errc::internal, cause.what()});
    } catch (...) {
      return keep(failure, error{errc::internal, "an exception of a type of its own"});
    }
  } catch (...) {  // no memory to compose the error with
    return SPARK_COMM_OUT_OF_MEMORY;
  }
}

void arguments::refuse(const std::string& message) const {
  error_context context;
  context.operation = function_;
  detail::throw_refusal(error{errc::invalid_argument, message, context});
}

duration arguments::limit(std::int64_t nanoseconds, const char* name) const {
  if (nanoseconds < 0) {
    refuse(std::string{name} + " of " + std::to_string(nanoseconds) + " ns is negative");
  }
  return duration{nanoseconds};
}

duration arguments::limit_or(std::int64_t nanoseconds, duration fallback, const char* name) const {
  return nanoseconds == 0 ? fallback : limit(nanoseconds, name);
}

std::optional<int> arguments::optional_int(const spark_comm_optional& given,
                                           const char* name) const {
  if (given.is_set == 0) {
    return std::nullopt;
  }
  if (given.value < INT_MIN || given.value > INT_MAX) {
    refuse(std::string{name} + " " + std::to_string(given.value) + " does not fit 32 bits");
  }
  return static_cast<int>(given.value);
}

void arguments::check_struct_size(std::size_t struct_size, std::size_t oldest_bytes) const {
  if (struct_size < oldest_bytes || struct_size > largest_struct_bytes) {
    refuse("struct_size is " + std::to_string(struct_size) +
           "; set it to sizeof the struct, which is at least " + std::to_string(oldest_bytes));
  }
}

void arguments::check_unknown_fields(const void* rest, std::size_t bytes) const {
  const std::span fields{static_cast<const std::byte*>(rest), bytes};
  if (std::ranges::all_of(fields, [](std::byte each) { return each == std::byte{}; })) {
    return;
  }
  error_context context;
  context.operation = function_;
  detail::throw_refusal(
      error{errc::not_supported,
            "a field is set that this library does not know: the program was built "
            "with the header of a newer one",
            context});
}

}  // namespace spark_comm::c
