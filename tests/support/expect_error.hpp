// SPDX-License-Identifier: AGPL-3.0-only
// Runs something that must throw the library's error, and hands the error over for inspection.
#pragma once

#include <spark_comm/core/error.hpp>

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

namespace spark_comm::testing {

/// The error that `call` throws; a failed test and an empty error when it throws none.
template <typename Call>
[[nodiscard]] error error_of(Call&& call) {
  try {
    static_cast<void>(std::forward<Call>(call)());
  } catch (const error& thrown) {
    return thrown;
  }
  ADD_FAILURE() << "no spark_comm::error was thrown";
  return error{errc::internal, "nothing was thrown"};
}

/// Expects that `call` throws `kind`, and that the line says `words`.
template <typename Call>
void expect_error(errc kind, std::string_view words, Call&& call) {
  const error thrown = error_of(std::forward<Call>(call));
  EXPECT_EQ(name_of(thrown.kind()), name_of(kind)) << thrown.what();
  EXPECT_NE(std::string_view{thrown.what()}.find(words), std::string_view::npos)
      << "expected '" << words << "' in: " << thrown.what();
}

}  // namespace spark_comm::testing
