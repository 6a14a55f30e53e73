// SPDX-License-Identifier: AGPL-3.0-only
// The first half of a worker's meeting: it finds the head and keeps a place.
#include <spark_comm/core/diagnostics.hpp>
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
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <memory>
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

time_point in(duration span) {
  return steady_time().now() + span;
}

std::size_t index(int rank) {
  return static_cast<std::size_t>(rank);
}

}  // namespace

worker_meeting::worker_meeting(asio::io_context& io, meeting_plan plan)
    : io_(io), plan_(std::move(plan)), place_(plan_.place) {
  fill_random(process_);
  if (plan_.options.again) {
    port_ = plan_.options.again->port;
  }
}

std::optional<met_world> worker_meeting::run() {
  spawn(io_, shared_from_this(), [this] { return find_head(); });
  try {
    run_until(
        io_,
        plan_.until,
        failure_,
        [this] { return is_over_ || is_lowest_; },
        plan_.options.cancel);
    if (!is_over_ && !is_lowest_) {
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
    throw;
  }
  leave();
  if (is_lowest_) {
    return std::nullopt;
  }
  met_world out{.place = std::move(place_),
                .generation = roster_->generation,
                .peers = std::move(peers_),
                .listeners = {},
                .port = std::move(port_)};
  out.peers[index(roster_->host)] = head_;
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
    if (plan_.options.again) {
      co_await find_lowest();
    } else {
      co_await call_meeting_point();
    }
    if (is_over_ || is_lowest_) {
      co_return;
    }
    if (has_answer_) {
      pause = duration::zero();  // this was a head: call it again soon
    }
    pause = next_pause(pause);
    co_await pause_for(pause);
  }
}

/// Of the ranks that were together before, the lowest that is there is the head. One that is there
/// holds its port; who finds nobody below itself is the lowest.
asio::awaitable<void> worker_meeting::find_lowest() {
  for (int rank = 0; rank < plan_.place.rank; ++rank) {
    const auto where = try_parse_numeric(plan_.options.again->listeners[index(rank)]);
    has_answer_ = false;
    host_ = rank;
    if (where && co_await try_endpoint(*where, share_of_time(index(plan_.place.rank - rank)))) {
      co_return;
    }
  }
  is_lowest_ = true;
}

asio::awaitable<void> worker_meeting::call_meeting_point() {
  // Blocks the loop, on which nothing else happens while there is no head.
  const resolution found = locate_head();
  if (!found.failure.empty()) {
    obstacle_ = fmt::format("could not find rank 0: {}", found.failure);
  }
  check_trust(plan_, found.endpoints);
  for (std::size_t i = 0; i < found.endpoints.size(); ++i) {
    has_answer_ = false;
    co_await try_endpoint(found.endpoints[i], share_of_time(found.endpoints.size() - i));
    if (is_over_ || has_answer_) {
      co_return;
    }
  }
}

resolution worker_meeting::locate_head() const {
  if (const auto path = path_of(plan_.place.address)) {
    return read_point(*path, plan_.mine.generation);
  }
  return resolve(parse_address(plan_.place.address), plan_.until);
}

duration worker_meeting::share_of_time(std::size_t candidates) const {
  return plan_.until.remaining() / static_cast<duration::rep>(candidates);
}

/// A dead address gets its `share` of the time and leaves the rest to those after it.
asio::awaitable<bool> worker_meeting::try_endpoint(tcp::endpoint where, duration share) {
  const time_point begin = steady_time().now();
  bool is_there = false;
  try {
    auto socket = co_await connect(io_, where, std::min<duration>(connect_limit, share));
    is_there = true;
    auto line = std::make_shared<connection>(std::move(socket), side::caller, plan_.keys);
    obstacle_ = fmt::format("connected to {}, but the handshake was not answered", to_text(where));
    co_await attend(line, std::min(in(answer_limit), begin + share));
  } catch (const std::system_error& failure) {
    if (dynamic_cast<const error*>(&failure) != nullptr) {
      throw;  // ours: a refusal, or this machine cannot do it
    }
    obstacle_ =
        fmt::format("could not connect to {}: {}", to_text(where), failure.code().message());
  }
  co_return is_there;
}

asio::awaitable<void> worker_meeting::attend(std::shared_ptr<connection> head, time_point limit) {
  head_ = head;
  try {
    head->expire_at(limit);
    co_await head->secure();
    open_listener(head->local());
    greet_head();
    while (!is_over_) {
      const frame received = co_await head->receive(max_handshake_bytes);
      if (received.kind == frame_kind::busy) {
        turned_away(received.body);
        break;
      }
      handle(received);
    }
    if (is_over_) {
      co_return;
    }
  } catch (const connection_lost& lost) {
    if (lost.cause() == loss::untrusted) {
      throw error{errc::mismatch,
                  fmt::format("refused by {}: {}", to_text(head->remote()), lost.what()),
                  context_of(plan_, {host_})};
    }
    if (lost.cause() == loss::cut_short) {
      throw error{errc::peer_lost,
                  fmt::format("rank {} at {}: {}", host_, to_text(head->remote()), lost.what()),
                  context_of(plan_, {host_})};
    }
    obstacle_ = has_answer_ ? fmt::format("the connection to rank {} at {} was lost: {}",
                                          host_,
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

void worker_meeting::turned_away(const bytes& body) {
  const auto said = decode_refusal(body);
  obstacle_ = said ? said->reason : fmt::format("rank {} is not meeting anybody", host_);
}

void worker_meeting::greet_head() {
  const hello_message hello{.version = protocol_version,
                            .world_size = plan_.place.world_size,
                            .rank = plan_.place.rank,
                            .generation = plan_.mine.generation,
                            .who = who(),
                            .process = process_,
                            .listener = to_text(port_->where()),
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
      throw error{errc::mismatch,
                  fmt::format("refused by rank {}: {}", host_, refusal->reason),
                  context_of(plan_)};
    }
  } else if (received.kind == frame_kind::remark) {
    if (const auto remark = decode_refusal(received.body)) {
      plan_.options.log.report_once(severity::warning, remark->reason, remark->reason);
      return;
    }
  } else if (received.kind == frame_kind::waiting) {
    if (auto waiting = decode_waiting(received.body)) {
      missing_.assign(waiting->missing.begin(), waiting->missing.end());
      return;
    }
  } else if (received.kind == frame_kind::roster) {
    auto roster = decode_roster(received.body);
    if (roster && take_place_in(*roster)) {
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
  throw connection_lost{loss::malformed, fmt::format("rank {} broke the protocol", host_)};
}

void worker_meeting::throw_timed_out() const {
  const std::string absent =
      fmt::format("rank{} {}", missing_.size() == 1 ? "" : "s", fmt::join(missing_, ", "));
  std::string text = obstacle_.empty() ? "no attempt was made" : obstacle_;
  if (has_answer_) {
    text = missing_.empty()
               ? "all ranks came, but did not all reach each other"
               : fmt::format(
                     "joined rank {} at {}, where {} did not come", host_, head_address(), absent);
  } else if (!missing_.empty()) {
    text += fmt::format("; when rank {} was last heard of, {} had not come", host_, absent);
  }
  const bool is_head_silent = plan_.options.again && !has_answer_;
  throw error{errc::timed_out,
              std::move(text),
              context_of(plan_, is_head_silent ? std::vector{host_} : missing_)};
}

std::string worker_meeting::head_address() const {
  return plan_.options.again ? plan_.options.again->listeners[index(host_)] : plan_.place.address;
}

void worker_meeting::leave() noexcept {
  close_listener();
  guests_.close_all();
}

std::optional<met_world> meet_as_worker(asio::io_context& io, const meeting_plan& plan) {
  return std::make_shared<worker_meeting>(io, plan)->run();
}

}  // namespace spark_comm::rendezvous::detail
