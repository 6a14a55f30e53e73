// SPDX-License-Identifier: AGPL-3.0-only
// A worker's part in a round: it holds a port, calls the workers below it, and is called by those
// above.
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/detail/backoff.hpp>
#include <spark_comm/rendezvous/detail/connection.hpp>
#include <spark_comm/rendezvous/detail/held_port.hpp>
#include <spark_comm/rendezvous/detail/meeting.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>
#include <spark_comm/rendezvous/detail/worker.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <memory>
#include <openssl/crypto.h>
#include <system_error>
#include <utility>

namespace spark_comm::rendezvous::detail {
namespace {

constexpr auto peer_limit = std::chrono::seconds{2};  // for another worker to say or answer a hello

time_point in(duration span) {
  return steady_time().now() + span;
}

std::size_t index(int rank) {
  return static_cast<std::size_t>(rank);
}

}  // namespace

/// The interface by which the head is reached is the one by which other ranks reach this one.
void worker_meeting::open_listener(const tcp::endpoint& like) {
  const bool is_port_right = port_ && port_->where().address() == like.address();
  if (listener_ && is_port_right) {
    return;
  }
  close_listener();
  if (!is_port_right) {
    port_ = held_port::listen(io_, like.address());
  }
  listener_ = port_->serve(io_);
  spawn(io_, shared_from_this(), [this, listener = listener_] { return accept_peers(listener); });
}

void worker_meeting::close_listener() noexcept {
  if (listener_) {
    std::error_code ignored;  // closing what is closed is no failure
    listener_->close(ignored);
    listener_.reset();
  }
}

bool worker_meeting::take_place_in(const roster_message& roster) {
  const auto size = static_cast<int>(roster.members.size());
  const auto mine = std::ranges::find(roster.members, plan_.place.rank);
  const bool is_whole = size == plan_.place.world_size;
  if (mine == roster.members.end() || roster.host < 0 || roster.host >= size ||
      (!is_whole && who() == membership::whole_world)) {
    return false;
  }
  place_.rank = static_cast<int>(mine - roster.members.begin());
  place_.world_size = size;
  return place_.rank != roster.host;
}

void worker_meeting::begin_round(roster_message roster) {
  end_round();
  host_ = roster.members[index(roster.host)];
  endpoints_.clear();
  for (const std::string& listener : roster.listeners) {
    const auto where = endpoint_seen_from(head_->local(), listener);
    if (!where) {
      throw connection_lost{
          loss::malformed,
          fmt::format("rank {} sent a roster that is not made of addresses", host_)};
    }
    endpoints_.push_back(*where);
  }
  const std::uint32_t round = roster.round;
  roster_ = std::move(roster);
  peers_.resize(endpoints_.size());
  for (int peer = 0; peer < place_.rank; ++peer) {
    if (peer != roster_->host) {
      spawn(io_, shared_from_this(), [this, peer, round] { return reach(peer, round); });
    }
  }
  if (has_met_all()) {
    head_->post(frame_kind::ready, encode(round_message{.round = round}));
  }
}

void worker_meeting::end_round() noexcept {
  for (const auto& line : peers_) {
    if (line) {
      line->close();
    }
  }
  peers_.clear();
  roster_.reset();
}

asio::awaitable<void> worker_meeting::reach(int peer, std::uint32_t round) {
  duration pause{};
  const auto is_current = [this, round] { return !is_over_ && roster_ && roster_->round == round; };
  while (is_current()) {
    auto line = co_await call(endpoints_[index(peer)]);
    if (line && is_current()) {
      met(peer, line);
      co_return;
    }
    // Refused, or the peer has not got this round's roster yet.
    pause = next_pause(pause);
    co_await pause_for(pause);
  }
}

/// Nothing if it was not to be had; the caller tries again.
asio::awaitable<std::shared_ptr<connection>> worker_meeting::call(tcp::endpoint where) {
  try {
    const mesh_hello_message hello{.rank = place_.rank, .secret = roster_->secret};
    auto socket = co_await connect(io_, where, peer_limit);
    auto line = std::make_shared<connection>(std::move(socket), side::caller, plan_.keys);
    guests_.enter(line);
    line->expire_at(in(peer_limit));
    co_await line->secure();
    line->post(frame_kind::mesh_hello, encode(hello));
    const frame answer = co_await line->receive(max_handshake_bytes);
    if (answer.kind == frame_kind::mesh_welcome) {
      co_return line;
    }
  } catch (const std::system_error& failure) {
    obstacle_ =
        fmt::format("could not connect to {}: {}", to_text(where), failure.code().message());
  } catch (const connection_lost& lost) {
    obstacle_ = fmt::format(
        "connected to {}, but the handshake was not answered: {}", to_text(where), lost.what());
  }
  co_return nullptr;
}

asio::awaitable<void> worker_meeting::accept_peers(std::shared_ptr<tcp::acceptor> acceptor) {
  try {
    while (!is_over_) {
      auto socket = co_await accept(acceptor);
      auto guest = std::make_shared<connection>(std::move(socket), side::called, plan_.keys);
      guests_.enter(guest);
      guest->expire_at(in(peer_limit));
      spawn(io_, shared_from_this(), [this, guest] { return receive_peer(guest); });
    }
  } catch (const std::system_error&) {
    co_return;  // cancelled: the meeting is over, or the head is reached by another interface
  }
}

asio::awaitable<void> worker_meeting::receive_peer(std::shared_ptr<connection> guest) {
  try {
    co_await guest->secure();
    const frame first = co_await guest->receive(max_handshake_bytes);
    const auto hello =
        first.kind == frame_kind::mesh_hello ? decode_mesh_hello(first.body) : std::nullopt;
    const bool is_peer =
        hello && roster_ && !is_over_ && hello->rank > place_.rank &&
        hello->rank < place_.world_size && hello->rank != roster_->host &&
        CRYPTO_memcmp(hello->secret.data(), roster_->secret.data(), hello->secret.size()) == 0;
    if (is_peer) {
      guest->post(frame_kind::mesh_welcome);
      met(hello->rank, guest);
      co_return;
    }
  } catch (const connection_lost&) {
    guest->close();  // a probe or a stranger
    co_return;
  }
  guest->close();  // not of this round; a peer that is ahead calls again
}

void worker_meeting::met(int peer, std::shared_ptr<connection> line) {
  guests_.leave(line);
  line->never_expire();
  auto& where = peers_[index(peer)];
  const bool is_again = where != nullptr;
  if (is_again) {
    where->close();
  }
  where = std::move(line);
  if (!is_again && has_met_all()) {
    head_->post(frame_kind::ready, encode(round_message{.round = roster_->round}));
  }
}

bool worker_meeting::has_met_all() const {
  for (int peer = 0; peer < place_.world_size; ++peer) {
    if (peer != place_.rank && peer != roster_->host && !peers_[index(peer)]) {
      return false;
    }
  }
  return true;
}

}  // namespace spark_comm::rendezvous::detail
