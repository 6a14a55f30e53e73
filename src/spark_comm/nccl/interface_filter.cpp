// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/nccl/interface_filter.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::nccl {
namespace {

bool take(std::string_view& text, char first) {
  const bool is_there = text.starts_with(first);
  text.remove_prefix(is_there ? 1 : 0);
  return is_there;
}

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> parts;
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    const std::string_view part = list.substr(0, comma);
    if (const std::string_view name = part.substr(0, part.find(':')); !name.empty()) {
      parts.push_back(name);
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return parts;
}

}  // namespace

std::vector<std::string> select_interfaces(std::string_view list,
                                           std::span<const std::string> present) {
  const bool excludes = take(list, '^');
  const bool is_exact = take(list, '=');
  const std::vector<std::string_view> parts = split(list);
  std::vector<std::string> selected;
  for (const std::string& name : present) {
    const bool is_named = std::ranges::any_of(parts, [&](std::string_view part) {
      return is_exact ? name == part : name.starts_with(part);
    });
    if (parts.empty() || is_named != excludes) {
      selected.push_back(name);
    }
  }
  return selected;
}

void require_interfaces(std::string_view variable,
                        std::string_view list,
                        std::span<const std::string> present) {
  if (!select_interfaces(list, present).empty()) {
    return;
  }
  throw error{errc::invalid_argument,
              fmt::format("{} is '{}', which leaves no interface; present are: {}",
                          variable,
                          list,
                          fmt::join(present, ", "))};
}

}  // namespace spark_comm::nccl
