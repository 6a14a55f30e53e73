// SPDX-License-Identifier: AGPL-3.0-only
// The text form of a meeting point: `host:port`, `[ipv6]:port`, `[ipv6%interface]:port`.
// Pure: nothing is looked up here.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/rendezvous/world.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace spark_comm::rendezvous {

/// A host (name or number, without brackets; an IPv6 scope stays in it) and a port.
struct address {
  std::string host;
  std::uint16_t port = 0;

  friend bool operator==(const address&, const address&) = default;
};

/// Throws: invalid_argument saying what is wrong with the text and what would be right.
[[nodiscard]] SPARK_COMM_API address parse_address(std::string_view text);

/// The text that `parse_address` reads back; IPv6 gets its brackets.
[[nodiscard]] SPARK_COMM_API std::string to_string(const address& where);

/// The address of a host and a port that were given apart, as launchers do. Brackets around an IPv6
/// host are optional.
/// Throws: as `parse_address`.
[[nodiscard]] SPARK_COMM_API address join_address(std::string_view host, std::string_view port);

/// Largest world that a rank's place may name.
inline constexpr int max_world_size = 1024;

/// Checks a place before anything is opened.
/// Throws: invalid_argument (world size, rank, address, port 0 on a rank that is not the head).
SPARK_COMM_API void check_place(const world& place);

}  // namespace spark_comm::rendezvous
