// SPDX-License-Identifier: AGPL-3.0-only
// Which link do two machines share? Found from the tables of both, never from the kind of a port:
// of several equal ports only one pair may be cabled together.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/rendezvous/network_port.hpp>

#include <span>
#include <vector>

namespace spark_comm::rendezvous {

/// A port here and the port there that it reaches.
struct shared_link {
  network_port mine;
  network_port theirs;
};

/// All pairs of fault-free ports in one subnet, the best first: by the slower end's speed, then by
/// the longer prefix (a /30 is a cable, a /24 the house's network), then by name.
///
/// Two ports with the same address are no link: one machine would have answered for both.
[[nodiscard]] SPARK_COMM_API std::vector<shared_link> shared_links(
    std::span<const network_port> mine, std::span<const network_port> theirs);

/// The best of them.
/// Throws: invalid_usage "no usable shared link" with both tables and what is wrong with each port.
[[nodiscard]] SPARK_COMM_API shared_link choose_link(std::span<const network_port> mine,
                                                     std::span<const network_port> theirs);

}  // namespace spark_comm::rendezvous
