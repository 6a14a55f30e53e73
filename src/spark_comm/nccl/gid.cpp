// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/nccl/gid.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spark_comm::nccl {
namespace {

constexpr std::string_view ipv4_prefix = "0000:0000:0000:0000:0000:ffff:";

std::string_view name_of(gid_type type) {
  switch (type) {
    case gid_type::infiniband: return "InfiniBand";
    case gid_type::roce_v1:    return "RoCE v1";
    case gid_type::roce_v2:    return "RoCE v2";
  }
  return "unknown";
}

/// Why connections over this entry may fail.
std::string doubt(const gid_entry& entry) {
  if (is_link_local(entry)) {
    return fmt::format("GID {} ({}) is link-local: it reaches the other end of its own cable only",
                       entry.index,
                       entry.gid);
  }
  if (entry.type == gid_type::roce_v1) {
    return fmt::format("GID {} ({}) is RoCE v1, which is not routed", entry.index, entry.gid);
  }
  return {};
}

std::string describe(std::span<const gid_entry> table) {
  std::string text;
  for (const gid_entry& entry : table) {
    if (!is_empty(entry)) {
      text += fmt::format(
          "{}{}: {} {}", text.empty() ? "" : ", ", entry.index, entry.gid, name_of(entry.type));
    }
  }
  return text.empty() ? "the table is empty" : text;
}

}  // namespace

bool is_ipv4(const gid_entry& entry) {
  return entry.gid.starts_with(ipv4_prefix);
}

bool is_link_local(const gid_entry& entry) {
  // 169.254 is a9fe in the table's digits.
  return entry.gid.starts_with("fe80:") ||
         (is_ipv4(entry) && std::string_view{entry.gid}.substr(ipv4_prefix.size(), 4) == "a9fe");
}

bool is_empty(const gid_entry& entry) {
  return entry.gid.find_first_not_of("0:") == std::string::npos;
}

gid_choice choose_gid(std::span<const gid_entry> table, std::optional<int> asked) {
  if (asked && *asked >= 0) {
    const auto at = std::ranges::find(table, *asked, &gid_entry::index);
    if (at == table.end() || is_empty(*at)) {
      throw error{errc::invalid_argument,
                  fmt::format("GID index {} is not in the table ({})", *asked, describe(table))};
    }
    return {.index = at->index, .warning = doubt(*at)};
  }
  const auto fit = std::ranges::find_if(table, [](const gid_entry& entry) {
    return !is_empty(entry) && doubt(entry).empty() && is_ipv4(entry);
  });
  if (fit == table.end()) {
    throw error{
        errc::invalid_usage,
        fmt::format("no GID of RoCE v2 with a routable IPv4 address ({})", describe(table))};
  }
  return {.index = fit->index, .warning = {}};
}

}  // namespace spark_comm::nccl
