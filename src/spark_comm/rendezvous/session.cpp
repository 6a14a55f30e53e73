// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/detail/meeting.hpp>
#include <spark_comm/rendezvous/detail/mesh_session.hpp>
#include <spark_comm/rendezvous/detail/trust.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/rendezvous/world.hpp>

#include <asio/io_context.hpp>
#include <cstddef>
#include <fmt/format.h>
#include <memory>
#include <utility>

namespace spark_comm::rendezvous {
namespace {

// Every rank holds a connection to every other.
constexpr int max_mesh_size = 64;

void check_entry(const world& place, const meeting_options& options) {
  const auto ranks = static_cast<std::size_t>(place.world_size);
  if (options.again &&
      (options.again->port == nullptr || options.again->listeners.size() != ranks)) {
    throw error{errc::invalid_argument,
                "ranks meet again by the port and the listeners of a session of the same world"};
  }
  if (options.way_in == entry::replacing && place.address.ends_with(":0")) {
    throw error{
        errc::invalid_argument,
        "a rank that comes in a lost one's place needs the port at which the others listen"};
  }
}

// Ranks that were together before agree by themselves on who listens: none of them need be rank 0.
bool is_worker(const detail::meeting_plan& plan) {
  return plan.options.again ? plan.place.rank > 0
                            : plan.place.rank > 0 || plan.options.way_in == entry::replacing;
}

detail::met_world meet_on(asio::io_context& io, const detail::meeting_plan& plan) {
  if (is_worker(plan)) {
    if (auto met = detail::meet_as_worker(io, plan)) {
      return std::move(*met);
    }
  }
  return detail::meet_as_head(io, plan);
}

}  // namespace

std::unique_ptr<session> session::meet(const world& place,
                                       const hello& mine,
                                       const deadline& until,
                                       const meeting_options& options) {
  check_place(place);
  check_entry(place, options);
  detail::meeting_plan plan{
      .place = place, .mine = mine, .until = until, .options = options, .keys = nullptr};
  if (place.world_size == 1) {
    return std::make_unique<detail::solo_session>(place.address, mine.generation);
  }
  if (place.world_size > max_mesh_size) {
    throw error{errc::not_supported,
                fmt::format("a world of {}: ranks connect in a full mesh, of at most {}",
                            place.world_size,
                            max_mesh_size),
                detail::context_of(plan)};
  }
  if (options.key) {
    plan.keys = std::make_shared<detail::trust>(*options.key);
  }
  auto io = std::make_unique<asio::io_context>(1);
  try {
    detail::met_world met = meet_on(*io, plan);
    if (met.place.world_size == 1) {
      return std::make_unique<detail::solo_session>(met.place.address, met.generation);
    }
    return std::make_unique<detail::mesh_session>(std::move(io), std::move(met), plan);
  } catch (const error& failure) {
    throw failure.with_context(detail::context_of(plan));
  }
}

}  // namespace spark_comm::rendezvous
