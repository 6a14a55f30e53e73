// SPDX-License-Identifier: AGPL-3.0-only
#include "doctor/finding.hpp"

#include "exit_code.hpp"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace spark_comm::app::doctor {
namespace {

std::string counted(std::size_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

}  // namespace

std::string_view name_of(grade how) noexcept {
  switch (how) {
    case grade::note:    return "note";
    case grade::warning: return "warning";
    case grade::problem: return "problem";
  }
  return "unknown";
}

exit_code exit_code_for(std::span<const finding> all) noexcept {
  const auto has = [&](grade how) {
    return std::ranges::find(all, how, &finding::how) != all.end();
  };
  if (has(grade::problem)) {
    return exit_code::failed;
  }
  return has(grade::warning) ? exit_code::wrong : exit_code::ok;
}

findings by_grade(findings all) {
  std::ranges::stable_sort(all, std::ranges::greater{}, &finding::how);
  return all;
}

std::string to_text(std::span<const finding> all) {
  std::string text;
  for (const finding& each : all) {
    text += fmt::format(
        "\n{}: {} [{}]\n    {}\n", name_of(each.how), each.seen, each.check, each.means);
    if (!each.remedy.empty()) {
      text += fmt::format("    {}{}\n", each.how == grade::note ? "" : "mend: ", each.remedy);
    }
  }
  const auto count = [&](grade how) {
    return static_cast<std::size_t>(std::ranges::count(all, how, &finding::how));
  };
  text += fmt::format("\n{}, {}, {}\n",
                      counted(count(grade::problem), "problem"),
                      counted(count(grade::warning), "warning"),
                      counted(count(grade::note), "note"));
  return text;
}

}  // namespace spark_comm::app::doctor
