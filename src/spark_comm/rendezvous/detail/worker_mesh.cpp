// SPDX-License-Identifier: AGPL-3.0-only
// The second half of a worker's meeting: all are there, and the workers meet each other.
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/detail/backoff.hpp>
#include <spark_comm/rendezvous/detail/connection.hpp>
#include <spark_comm/rendezvous/detail/meeting.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>
#include <spark_comm/rendezvous/detail/worker.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <memory>
#include <openssl/crypto.h>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace spark_comm::rendezvous::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto peer_limit = 2s;  // for another worker to say or answer a hello

std::size_t index(int rank) {
  return static_cast<std::size_t>(rank);
}

}  // namespace

void worker_meeting::begin_round(roster_message roster) {
  end_round();
  endpoints_ = {head_->remote()};
  for (std::size_t peer = 1; peer < roster.listeners.size(); ++peer) {
    endpoints_.push_back(endpoint_from(roster.listeners[peer]));
  }
  const std::uint32_t round = roster.round;
  roster_ = std::move(roster);
  peers_.resize(endpoints_.size());
  for (int peer = 1; peer < plan_.place.rank; ++peer) {
    spawn(io_, shared_from_this(), [this, peer, round] { return reach(peer, round); });
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
    const mesh_hello_message hello{.rank = plan_.place.rank, .secret = roster_->secret};
    auto socket = co_await connect(io_, where, peer_limit);
    auto line = std::make_shared<connection>(std::move(socket), side::caller, plan_.keys);
    guests_.enter(line);
    line->expire_at(steady_time().now() + peer_limit);
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
      guest->expire_at(steady_time().now() + peer_limit);
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
        hello && roster_ && !is_over_ && hello->rank > plan_.place.rank &&
        hello->rank < plan_.place.world_size &&
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
  for (int peer = 1; peer < plan_.place.world_size; ++peer) {
    if (peer != plan_.place.rank && !peers_[index(peer)]) {
      return false;
    }
  }
  return true;
}

/// Where this rank reaches another. A link-local address means nothing without the interface, and
/// the interface's name is each host's own: it is the one by which the head is reached.
tcp::endpoint worker_meeting::endpoint_from(const std::string& listener) const {
  const auto where = try_parse_numeric(listener);
  if (!where) {
    throw connection_lost{loss::malformed, "rank 0 sent a roster that is not made of addresses"};
  }
  const auto& local = head_->local().address();
  if (where->address().is_v6() && where->address().to_v6().is_link_local() && local.is_v6()) {
    auto scoped = where->address().to_v6();
    scoped.scope_id(local.to_v6().scope_id());
    return {scoped, where->port()};
  }
  return *where;
}

}  // namespace spark_comm::rendezvous::detail
