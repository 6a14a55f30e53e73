// SPDX-License-Identifier: AGPL-3.0-only
// Where the head of a meeting listens, and how one of survivors learns who is not coming.
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/detail/backoff.hpp>
#include <spark_comm/rendezvous/detail/file_point.hpp>
#include <spark_comm/rendezvous/detail/head.hpp>
#include <spark_comm/rendezvous/detail/held_port.hpp>
#include <spark_comm/rendezvous/detail/meeting.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <chrono>
#include <cstddef>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace spark_comm::rendezvous::detail {
namespace {

// For a rank to be reached; one that is not is gone.
constexpr auto look_limit = std::chrono::seconds{2};

std::size_t index(int rank) {
  return static_cast<std::size_t>(rank);
}

}  // namespace

void head_meeting::open() {
  if (plan_.options.again) {
    listen_again();
  } else if (const auto path = path_of(plan_.place.address)) {
    listen_behind_file(*path);
  } else {
    listen_at_address();
  }
  for (const auto& each : acceptors_) {
    spawn(io_, shared_from_this(), [this, each] { return accept_guests(each); });
  }
  if (plan_.options.on_listening) {
    plan_.options.on_listening(meeting_point_);
  }
  if (table_.who == membership::survivors) {
    for (int rank = 0; rank < table_.world_size; ++rank) {
      if (rank != host_) {
        spawn(io_, shared_from_this(), [this, rank] { return look_for(rank); });
      }
    }
  }
}

void head_meeting::listen_at_address() {
  const address where = parse_address(plan_.place.address);
  const resolution found = resolve(where, plan_.until);
  if (found.endpoints.empty()) {
    throw error{errc::system_failed,
                fmt::format("cannot listen at {}: {}", to_string(where), found.failure),
                context_of(plan_)};
  }
  check_trust(plan_, found.endpoints);
  for (tcp::acceptor& each : listen_at_all(io_, found.endpoints)) {
    acceptors_.push_back(std::make_shared<tcp::acceptor>(std::move(each)));
  }
  meeting_point_ =
      to_string(address{.host = where.host, .port = acceptors_.back()->local_endpoint().port()});
}

/// Without a key nobody off this machine may come, so loopback is all that is offered.
void head_meeting::listen_behind_file(const std::string& path) {
  const tcp::endpoint where =
      plan_.keys ? any_endpoint() : tcp::endpoint{asio::ip::address_v4::loopback(), 0};
  acceptors_.push_back(std::make_shared<tcp::acceptor>(listen_at(io_, where)));
  const tcp::endpoint bound = acceptors_.back()->local_endpoint();
  const auto reached = plan_.keys ? reachable_at(bound.port()) : std::vector{bound};
  meeting_point_ = to_text(reached.empty() ? bound : reached.front());
  published_.emplace(path, point_text(plan_.mine.generation, reached));
}

/// At the own port, where those who were together before look, and where a rank that comes in a
/// lost one's place looks: at the address of the first meeting, if this machine can have it.
void head_meeting::listen_again() {
  port_ = plan_.options.again->port;
  places_[index(host_)].listener = to_text(port_->where());
  acceptors_.push_back(port_->serve(io_));
  try {
    if (const auto path = path_of(plan_.place.address)) {
      listen_behind_file(*path);
    } else {
      listen_at_address();
    }
  } catch (const error& failure) {
    meeting_point_ = to_text(port_->where());
    if (table_.who == membership::whole_world) {
      plan_.options.log.report(
          severity::warning,
          fmt::format("rank {} cannot listen at {} ({}): a rank that comes in a lost one's place "
                      "must be given {}",
                      host_,
                      plan_.place.address,
                      failure.message(),
                      meeting_point_));
    }
  }
}

/// The interface by which the head is reached is the one by which it will be found again.
void head_meeting::hold_port(const tcp::endpoint& like) {
  if (!port_) {
    port_ = held_port::listen(io_, like.address());
    places_[index(host_)].listener = to_text(port_->where());
  }
}

/// A rank that is there holds its port; it may be lost at any time until it has come.
asio::awaitable<void> head_meeting::look_for(int rank) {
  const auto where = try_parse_numeric(plan_.options.again->listeners[index(rank)]);
  duration pause{};
  while (where && !is_over_ && !failure_ && !is_gone_[index(rank)]) {
    if (!places_[index(rank)].line) {
      try {
        const tcp::socket seen = co_await connect(io_, *where, look_limit);
      } catch (const std::system_error&) {
        is_gone_[index(rank)] = !places_[index(rank)].line;
        if (is_gone_[index(rank)] && !is_committing_) {
          house_changed();
        }
      }
    }
    pause = next_pause(pause);
    co_await pause_for(pause);
  }
}

}  // namespace spark_comm::rendezvous::detail
