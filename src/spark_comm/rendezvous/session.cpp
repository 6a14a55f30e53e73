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
#include <fmt/format.h>
#include <memory>
#include <utility>

namespace spark_comm::rendezvous {
namespace {

// Every rank holds a connection to every other.
constexpr int max_mesh_size = 64;

}  // namespace

std::unique_ptr<session> session::meet(const world& place,
                                       const hello& mine,
                                       const deadline& until,
                                       const meeting_options& options) {
  check_place(place);
  detail::meeting_plan plan{
      .place = place, .mine = mine, .until = until, .options = options, .keys = nullptr};
  if (place.world_size == 1) {
    return std::make_unique<detail::solo_session>();
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
    auto met =
        place.rank == 0 ? detail::meet_as_head(*io, plan) : detail::meet_as_worker(*io, plan);
    return std::make_unique<detail::mesh_session>(std::move(io), place, std::move(met), options);
  } catch (const error& failure) {
    throw failure.with_context(detail::context_of(plan));
  }
}

}  // namespace spark_comm::rendezvous
