// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/detail/backoff.hpp>
#include <spark_comm/rendezvous/detail/connection.hpp>
#include <spark_comm/rendezvous/detail/file_point.hpp>
#include <spark_comm/rendezvous/detail/meeting.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>
#include <spark_comm/rendezvous/detail/worker.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <memory>
#include <openssl/crypto.h>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace spark_comm::rendezvous::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto connect_limit = 2s;  // for one address, so that a dead one leaves time for the next
constexpr auto answer_limit = 3s;   // for a head to answer a hello before it is called again
constexpr auto peer_limit = 2s;     // for another worker to say or answer a hello

time_point in(duration span) {
  return steady_time().now() + span;
}

std::size_t index(int rank) {
  return static_cast<std::size_t>(rank);
}

}  // namespace

worker_meeting::worker_meeting(asio::io_context& io, meeting_plan plan)
    : io_(io), plan_(std::move(plan)) {
  fill_random(process_);
}

met_world worker_meeting::run() {
  spawn(io_, shared_from_this(), [this] { return find_head(); });
  try {
    run_until(io_, plan_.until, failure_, [this] { return is_over_; }, plan_.options.cancel);
    if (!is_over_) {
      if (head_ && has_answer_) {
        head_->post(frame_kind::farewell);
      }
      throw_timed_out();
    }
  } catch (...) {
    leave();
    end_round();
    if (head_) {
      head_->close();
    }
    close_listener();
    throw;
  }
  leave();
  met_world out{.peers = std::move(peers_), .listeners = {}, .listener = std::move(listener_)};
  out.peers.front() = head_;
  std::ranges::transform(endpoints_, std::back_inserter(out.listeners), to_text);
  return out;
}

void worker_meeting::fail(std::exception_ptr failure) noexcept {
  if (!failure_) {
    failure_ = std::move(failure);
  }
}

asio::awaitable<void> worker_meeting::find_head() {
  duration pause{};
  while (!is_over_ && !failure_) {
    // Blocks the loop, on which nothing else happens while there is no head.
    const resolution found = locate_head();
    if (!found.failure.empty()) {
      obstacle_ = fmt::format("could not find rank 0: {}", found.failure);
    }
    check_trust(plan_, found.endpoints);
    for (const tcp::endpoint& each : found.endpoints) {
      has_answer_ = false;
      co_await try_endpoint(each);
      if (is_over_) {
        co_return;
      }
      if (has_answer_) {
        pause = duration::zero();  // this was a head: call it again soon
        break;
      }
    }
    pause = next_pause(pause);
    co_await pause_for(pause);
  }
}

resolution worker_meeting::locate_head() const {
  if (const auto path = path_of(plan_.place.address)) {
    return read_point(*path, plan_.mine.generation);
  }
  return resolve(parse_address(plan_.place.address), plan_.until);
}

asio::awaitable<void> worker_meeting::try_endpoint(tcp::endpoint where) {
  try {
    auto socket = co_await connect(io_, where, connect_limit);
    auto line = std::make_shared<connection>(std::move(socket), side::caller, plan_.keys);
    obstacle_ = fmt::format("connected to {}, but the handshake was not answered", to_text(where));
    co_await attend(line);
  } catch (const std::system_error& failure) {
    if (dynamic_cast<const error*>(&failure) != nullptr) {
      throw;  // ours: a refusal, or this machine cannot do it
    }
    obstacle_ =
        fmt::format("could not connect to {}: {}", to_text(where), failure.code().message());
  }
}

asio::awaitable<void> worker_meeting::attend(std::shared_ptr<connection> head) {
  head_ = head;
  try {
    head->expire_at(in(answer_limit));
    co_await head->secure();
    open_listener(head->local());
    greet_head();
    while (!is_over_) {
      const frame received = co_await head->receive(max_handshake_bytes);
      handle(received);
    }
    co_return;
  } catch (const connection_lost& lost) {
    if (lost.cause() == loss::untrusted) {
      throw error{errc::mismatch,
                  fmt::format("refused by {}: {}", to_text(head->remote()), lost.what()),
                  context_of(plan_, {0})};
    }
    if (lost.cause() == loss::cut_short) {
      throw error{errc::peer_lost,
                  fmt::format("rank 0 at {}: {}", to_text(head->remote()), lost.what()),
                  context_of(plan_, {0})};
    }
    obstacle_ = has_answer_ ? fmt::format("the connection to rank 0 at {} was lost: {}",
                                          to_text(head->remote()),
                                          lost.what())
                            : fmt::format("connected to {}, but the handshake was not answered: {}",
                                          to_text(head->remote()),
                                          lost.what());
  }
  head->close();
  head_.reset();
  end_round();
}

/// The interface by which the head is reached is the one by which other ranks reach this one.
void worker_meeting::open_listener(const tcp::endpoint& like) {
  if (listener_ && listener_->local_endpoint().address() == like.address()) {
    return;
  }
  close_listener();
  listener_ = std::make_shared<tcp::acceptor>(listen_at(io_, tcp::endpoint{like.address(), 0}));
  spawn(io_, shared_from_this(), [this, listener = listener_] { return accept_peers(listener); });
}

void worker_meeting::close_listener() noexcept {
  if (listener_) {
    std::error_code ignored;  // closing what is closed is no failure
    listener_->close(ignored);
    listener_.reset();
  }
}

void worker_meeting::greet_head() {
  const hello_message hello{.version = protocol_version,
                            .world_size = plan_.place.world_size,
                            .rank = plan_.place.rank,
                            .generation = plan_.mine.generation,
                            .process = process_,
                            .listener = to_text(listener_->local_endpoint()),
                            .facts = plan_.mine.facts};
  head_->post(frame_kind::hello, encode(hello));
}

void worker_meeting::handle(const frame& received) {
  has_answer_ = true;
  head_->never_expire();
  if (received.kind == frame_kind::ping) {
    head_->post(frame_kind::pong);
    return;
  }
  if (received.kind == frame_kind::refusal) {
    if (auto refusal = decode_refusal(received.body)) {
      throw error{errc::mismatch, "refused by rank 0: " + refusal->reason, context_of(plan_)};
    }
  } else if (received.kind == frame_kind::waiting) {
    if (auto waiting = decode_waiting(received.body)) {
      missing_.assign(waiting->missing.begin(), waiting->missing.end());
      return;
    }
  } else if (received.kind == frame_kind::roster) {
    auto roster = decode_roster(received.body);
    if (roster && roster->listeners.size() == index(plan_.place.world_size)) {
      begin_round(std::move(*roster));
      return;
    }
  } else if (received.kind == frame_kind::commit) {
    const auto round = decode_round(received.body);
    if (round && roster_ && round->round == roster_->round && has_met_all()) {
      head_->post(frame_kind::committed, encode(*round));
      is_over_ = true;
      return;
    }
  }
  throw connection_lost{loss::malformed, "rank 0 broke the protocol"};
}

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

void worker_meeting::throw_timed_out() const {
  const std::string absent =
      fmt::format("rank{} {}", missing_.size() == 1 ? "" : "s", fmt::join(missing_, ", "));
  std::string text = obstacle_.empty() ? "no attempt was made" : obstacle_;
  if (has_answer_) {
    text = missing_.empty()
               ? "all ranks came, but did not all reach each other"
               : fmt::format(
                     "joined rank 0 at {}, where {} did not come", plan_.place.address, absent);
  } else if (!missing_.empty()) {
    text += fmt::format("; when rank 0 was last heard of, {} had not come", absent);
  }
  throw error{errc::timed_out, std::move(text), context_of(plan_, missing_)};
}

void worker_meeting::leave() noexcept {
  if (listener_) {
    std::error_code ignored;  // nothing to cancel is no failure
    listener_->cancel(ignored);
  }
  guests_.close_all();
}

met_world meet_as_worker(asio::io_context& io, const meeting_plan& plan) {
  return std::make_shared<worker_meeting>(io, plan)->run();
}

}  // namespace spark_comm::rendezvous::detail
