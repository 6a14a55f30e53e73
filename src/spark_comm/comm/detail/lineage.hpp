// SPDX-License-Identifier: AGPL-3.0-only
// What the generations of a communicator hand on.
#pragma once

#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/rendezvous/world.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace spark_comm::detail {

/// What one generation leaves to the next.
struct lineage {
  world place;
  std::uint64_t generation = 0;                       ///< The last that these ranks met in.
  std::vector<std::string> listeners;                 ///< Where each of them is found, by rank.
  std::shared_ptr<const rendezvous::held_port> port;  ///< This rank's own; null before any meeting.
  rendezvous::membership who = rendezvous::membership::whole_world;  ///< Of the next meeting.
};

}  // namespace spark_comm::detail
