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
    for (std::size_t i = 0; i < found.endpoints.size(); ++i) {
      has_answer_ = false;
      // A dead address gets its share of the time and leaves the rest to those after it.
      const auto share =
          plan_.until.remaining() / static_cast<duration::rep>(found.endpoints.size() - i);
      co_await try_endpoint(found.endpoints[i], share);
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

asio::awaitable<void> worker_meeting::try_endpoint(tcp::endpoint where, duration share) {
  const time_point begin = steady_time().now();
  try {
    auto socket = co_await connect(io_, where, std::min<duration>(connect_limit, share));
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
