// SPDX-License-Identifier: AGPL-3.0-only
// What a check of `doctor` has to say: how bad, what was seen, what it means, what mends it.
#pragma once

#include "exit_code.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::app::doctor {

/// How bad a finding is; the worst one decides the exit code.
enum class grade : std::uint8_t {
  note,     ///< Good to know; nothing has to be done. Exit code 0.
  warning,  ///< Works, but slower or less surely than this machine could. Exit code 1.
  problem,  ///< Does not work before it is mended. Exit code 4.
};

inline constexpr grade all_grades[] = {grade::note, grade::warning, grade::problem};

[[nodiscard]] std::string_view name_of(grade how) noexcept;

struct finding {
  grade how = grade::note;
  std::string check;   ///< "roce.half_unused": the name under which docs/doctor.md explains it.
  std::string seen;    ///< What is the case, with names and numbers.
  std::string means;   ///< What follows from it.
  std::string remedy;  ///< A command, or what to do; empty for a note that needs nothing.

  friend bool operator==(const finding&, const finding&) = default;
};

using findings = std::vector<finding>;

[[nodiscard]] exit_code exit_code_for(std::span<const finding> all) noexcept;

/// The worst first; those of one grade stay in order.
[[nodiscard]] findings by_grade(findings all);

[[nodiscard]] std::string to_text(std::span<const finding> all);

}  // namespace spark_comm::app::doctor
