// SPDX-License-Identifier: AGPL-3.0-only
// What the tool's exit code says, and the exception that carries it together with its one line.
#pragma once

#include <spark_comm/core/error.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace spark_comm::app {

/// Exit code of the tool; part of its interface.
enum class exit_code : std::uint8_t {
  ok = 0,             ///< Everything was done, and every result was right.
  wrong = 1,          ///< Something ran to its end with a wrong result.
  usage = 2,          ///< The command line cannot be followed; the text says what is accepted.
  not_available = 3,  ///< This machine or library cannot do it.
  failed = 4,         ///< It was tried and did not work.
};

/// Ends the tool with `code` after one line on stderr.
class failure : public std::runtime_error {
 public:
  failure(exit_code code, const std::string& text) : std::runtime_error(text), code_(code) {}

  [[nodiscard]] exit_code code() const noexcept { return code_; }

 private:
  exit_code code_;
};

/// A usage error: what was given, and what is accepted.
[[nodiscard]] inline failure usage_failure(const std::string& text) {
  return {exit_code::usage, text};
}

/// The exit code for an error of the library.
[[nodiscard]] exit_code exit_code_for(errc code) noexcept;

}  // namespace spark_comm::app
