// SPDX-License-Identifier: AGPL-3.0-only
// demo: makes two ranks fail on purpose, and shows what each of them is told.
#pragma once

#include "exit_code.hpp"
#include "invocation.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spark_comm::app {

/// What goes wrong.
enum class mishap : std::uint8_t {
  mismatch,  ///< The ranks pass different counts.
  dead,      ///< A rank is killed.
  frozen,    ///< A rank is stopped: it lives, and does nothing.
};

inline constexpr mishap all_mishaps[] = {mishap::mismatch, mishap::dead, mishap::frozen};

[[nodiscard]] std::string_view name_of(mishap what) noexcept;
[[nodiscard]] std::optional<mishap> parse_mishap(std::string_view name) noexcept;

struct demo_options {
  std::optional<mishap> what;  ///< Empty: all, one after the other.
};

/// Runs the ranks and prints what they say.
[[nodiscard]] exit_code run_demo(const demo_options& options, const invocation& how);

/// One rank's part. Ends with `exit_code::ok` once it was told of the mishap.
[[nodiscard]] exit_code run_demo_rank(mishap what);

}  // namespace spark_comm::app
