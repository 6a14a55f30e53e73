// SPDX-License-Identifier: AGPL-3.0-only
// The head's decision about a hello, as a function of values.
#pragma once

#include <spark_comm/rendezvous/detail/wire.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm::rendezvous::detail {

/// What the head knows of a rank that has a place.
struct seat {
  nonce process{};
  std::vector<fact> facts;
};

/// What a hello is held against.
struct seating {
  int world_size = 1;
  int host = 0;  ///< The rank that decides.
  membership who = membership::whole_world;
  std::vector<fact> facts;                 ///< The head's own.
  std::vector<std::optional<seat>> seats;  ///< By rank; the host's is never used.
};

/// What to do with a hello.
enum class verdict : std::uint8_t {
  accept,      ///< The place is free: it is theirs.
  replace,     ///< The same process came again on a new connection: it takes its place over.
  ask_holder,  ///< The place is taken: refuse if the holder still answers, else accept.
  refuse,      ///< It does not fit; the right rank may still come.
  clash,       ///< A rank of this world is built otherwise: refuse it and give the meeting up.
};

struct admission {
  verdict what = verdict::refuse;
  std::string reason;                ///< For all but accept and replace.
  std::vector<std::string> remarks;  ///< Differences that do no harm.
};

[[nodiscard]] admission admit(const seating& table, const hello_message& guest);

}  // namespace spark_comm::rendezvous::detail
