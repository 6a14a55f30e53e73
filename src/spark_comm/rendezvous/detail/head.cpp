// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/detail/admission.hpp>
#include <spark_comm/rendezvous/detail/connection.hpp>
#include <spark_comm/rendezvous/detail/head.hpp>
#include <spark_comm/rendezvous/detail/meeting.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>

#include <algorithm>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace spark_comm::rendezvous::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto hello_limit = 2s;    // for a stranger to say who it is
constexpr auto answer_limit = 1s;   // for a seated rank to answer a ping
constexpr auto goodbye_limit = 1s;  // for a refused rank to read why
constexpr std::size_t max_noted_refusals = 16;

time_point in(duration span) {
  return steady_time().now() + span;
}

std::size_t index(int rank) {
  return static_cast<std::size_t>(rank);
}

}  // namespace

head_meeting::head_meeting(asio::io_context& io, meeting_plan plan)
    : io_(io),
      plan_(std::move(plan)),
      host_(plan_.place.rank),
      generation_(plan_.mine.generation),
      table_{.world_size = plan_.place.world_size,
             .host = host_,
             .who = plan_.options.again ? plan_.options.again->who : membership::whole_world,
             .facts = plan_.mine.facts,
             .seats = {}},
      places_(index(plan_.place.world_size)),
      is_gone_(places_.size()) {
  table_.seats.resize(places_.size());
  for (place& each : places_) {
    each.answer = std::make_unique<asio::steady_timer>(io_);
  }
}

met_world head_meeting::run() {
  open();
  try {
    run_until(io_, plan_.until, failure_, [this] { return is_over_; }, plan_.options.cancel);
    if (!is_over_) {
      throw_timed_out();
    }
  } catch (...) {
    leave();
    for (const place& each : places_) {
      if (each.line) {
        each.line->close();
      }
    }
    throw;
  }
  leave();
  // Port 0 of the first meeting has become a real one, for those who meet again.
  const bool is_port_open = plan_.place.address.ends_with(":0");
  met_world out{.place = {.address = is_port_open ? meeting_point_ : plan_.place.address,
                          .rank = place_of(host_),
                          .world_size = static_cast<int>(members_.size())},
                .generation = generation_,
                .peers = {},
                .listeners = {},
                .port = std::move(port_)};
  for (const int member : members_) {
    out.peers.push_back(places_[index(member)].line);
    out.listeners.push_back(places_[index(member)].listener);
  }
  return out;
}

void head_meeting::fail(std::exception_ptr failure) noexcept {
  if (!failure_) {
    failure_ = std::move(failure);
  }
}

asio::awaitable<void> head_meeting::accept_guests(std::shared_ptr<tcp::acceptor> acceptor) {
  try {
    for (;;) {
      auto socket = co_await accept(acceptor);
      auto guest = std::make_shared<connection>(std::move(socket), side::called, plan_.keys);
      guests_.enter(guest);
      guest->expire_at(in(hello_limit));
      spawn(io_, shared_from_this(), [this, guest] { return receive_guest(guest); });
    }
  } catch (const std::system_error&) {
    if (acceptor->is_open()) {
      throw;  // otherwise the meeting is over
    }
  }
}

asio::awaitable<void> head_meeting::receive_guest(std::shared_ptr<connection> guest) {
  try {
    co_await guest->secure();
    const frame first = co_await guest->receive(max_handshake_bytes);
    const auto hello = first.kind == frame_kind::hello ? decode_hello(first.body) : std::nullopt;
    if (!hello) {
      guest->close();
      co_return;
    }
    const admission decision = co_await decide(*hello);
    if (decision.what == verdict::accept || decision.what == verdict::replace) {
      for (const std::string& remark : decision.remarks) {
        plan_.options.log.report_once(severity::warning, remark, remark);
        guest->post(frame_kind::remark, encode(refusal_message{.reason = remark}));
      }
      take_place(*hello, guest);
      co_return;
    }
    note_refusal(decision.reason);
    if (decision.what == verdict::clash) {
      tell_all(frame_kind::refusal, encode(refusal_message{.reason = decision.reason}));
    }
    co_await turn_away(guest, decision.reason);
    if (decision.what == verdict::clash) {
      throw error{errc::mismatch, decision.reason, context_of(plan_)};
    }
  } catch (const connection_lost& lost) {
    guest->close();  // a probe, a stranger, or a rank that will come again
    if (lost.cause() == loss::untrusted) {
      note_refusal(lost.what());
    }
  }
}

asio::awaitable<admission> head_meeting::decide(const hello_message& hello) {
  admission decision = admit(table_, hello);
  if (decision.what == verdict::ask_holder && !is_committing_) {
    const auto holder = places_[index(hello.rank)].line;
    const bool is_held = co_await still_answers(hello.rank);
    if (!is_held && holder == places_[index(hello.rank)].line) {
      free_place(hello.rank, "it no longer answers");
    }
    decision = admit(table_, hello);  // much may have happened meanwhile
  }
  if (decision.what == verdict::ask_holder) {
    decision.what = verdict::refuse;
  }
  co_return decision;
}

asio::awaitable<bool> head_meeting::still_answers(int rank) {
  place& holder = places_[index(rank)];
  const auto line = holder.line;
  if (!line) {
    co_return false;
  }
  line->post(frame_kind::ping);
  holder.answer->expires_after(answer_limit);
  std::error_code cancelled;
  co_await holder.answer->async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  co_return cancelled&& holder.line == line;
}

asio::awaitable<void> head_meeting::turn_away(std::shared_ptr<connection> guest,
                                              std::string reason) {
  guest->post(frame_kind::refusal, encode(refusal_message{.reason = std::move(reason)}));
  guest->expire_at(in(goodbye_limit));
  try {
    co_await guest->receive(0);  // its end of the connection closes when it has read the reason
  } catch (const connection_lost&) {
    guest->close();
    co_return;
  }
  guest->close();
}

void head_meeting::take_place(const hello_message& hello, std::shared_ptr<connection> line) {
  place& where = places_[index(hello.rank)];
  if (where.line) {
    where.line->close();
  }
  guests_.leave(line);
  line->never_expire();
  where.line = line;
  where.has_given_up = false;
  where.listener = hello.listener;
  generation_ = std::max(generation_, hello.generation);
  hold_port(line->local());
  table_.seats[index(hello.rank)] = seat{.process = hello.process, .facts = hello.facts};
  spawn(io_, shared_from_this(), [this, rank = hello.rank, line] { return tend(rank, line); });
  house_changed();
}

asio::awaitable<void> head_meeting::tend(int rank, std::shared_ptr<connection> line) {
  place& where = places_[index(rank)];
  std::string why;
  try {
    while (where.line == line && !where.has_committed) {
      const frame received = co_await line->receive(max_handshake_bytes);
      if (where.line == line) {
        handle(rank, where, received);
      }
    }
    co_return;
  } catch (const connection_lost& lost) {
    why = lost.what();
  }
  if (where.line == line && !is_over_) {
    free_place(rank, why);
  }
}

void head_meeting::handle(int rank, place& where, const frame& received) {
  if (received.kind == frame_kind::pong) {
    where.answer->cancel();
    return;
  }
  if (received.kind == frame_kind::farewell) {
    where.has_given_up = true;
    free_place(rank, "its own deadline passed");
    return;
  }
  const auto said = decode_round(received.body);
  const bool is_current = said && said->round == round_;
  if (received.kind == frame_kind::ready && said) {
    where.is_ready = where.is_ready || is_current;
    if (where.is_ready && !is_committing_ && everybody(&place::is_ready)) {
      is_committing_ = true;
      tell_all(frame_kind::commit, encode(round_message{.round = round_}));
    }
    return;
  }
  if (received.kind == frame_kind::committed && is_current && is_committing_) {
    where.has_committed = true;
    is_over_ = everybody(&place::has_committed);
    return;
  }
  free_place(rank, "it broke the protocol");
}

void head_meeting::free_place(int rank, const std::string& why) {
  place& where = places_[index(rank)];
  if (where.line) {
    where.line->close();
  }
  where.line.reset();
  where.is_ready = false;
  where.answer->cancel();
  table_.seats[index(rank)].reset();
  if (is_committing_) {
    fail(std::make_exception_ptr(
        error{errc::peer_lost,
              fmt::format("rank {} was lost in the last step of the meeting: {}", rank, why),
              context_of(plan_, {rank})}));
    return;
  }
  note_refusal(fmt::format("rank {} came and was lost: {}", rank, why));
  house_changed();
}

void head_meeting::house_changed() {
  const std::vector<int> absent = missing();
  if (!absent.empty()) {
    members_.clear();
    tell_all(frame_kind::waiting,
             encode(waiting_message{.missing = {absent.begin(), absent.end()}}));
    return;
  }
  seat_members();
  if (members_.size() == 1) {
    is_over_ = true;  // the only survivor
    return;
  }
  roster_message roster{.round = ++round_,
                        .generation = generation_,
                        .host = place_of(host_),
                        .secret = {},
                        .members = {members_.begin(), members_.end()},
                        .listeners = {}};
  fill_random(roster.secret);
  for (const int member : members_) {
    place& each = places_[index(member)];
    each.is_ready = false;
    roster.listeners.push_back(each.listener);
  }
  tell_all(frame_kind::waiting, encode(waiting_message{}));
  tell_all(frame_kind::roster, encode(roster));
}

void head_meeting::tell_all(frame_kind kind, const bytes& body) {
  for (const place& each : places_) {
    if (each.line) {
      each.line->post(kind, body);
    }
  }
}

void head_meeting::note_refusal(const std::string& reason) {
  if (refusals_.size() < max_noted_refusals || refusals_.contains(reason)) {
    ++refusals_[reason];
  }
}

std::vector<int> head_meeting::missing() const {
  std::vector<int> absent;
  for (int rank = 0; rank < plan_.place.world_size; ++rank) {
    if (rank != host_ && !places_[index(rank)].line && !is_gone_[index(rank)]) {
      absent.push_back(rank);
    }
  }
  return absent;
}

void head_meeting::seat_members() {
  members_.clear();
  for (int rank = 0; rank < plan_.place.world_size; ++rank) {
    if (rank == host_ || places_[index(rank)].line) {
      members_.push_back(rank);
    }
  }
}

int head_meeting::place_of(int member) const {
  return static_cast<int>(std::ranges::find(members_, member) - members_.begin());
}

bool head_meeting::everybody(bool place::* has_done) const {
  return std::ranges::all_of(
      members_, [&](int member) { return member == host_ || places_[index(member)].*has_done; });
}

void head_meeting::throw_timed_out() const {
  std::vector<int> absent = missing();
  // Deadlines of ranks that started together end together: one that was here is not to blame.
  const auto never_came = [this](int rank) { return !places_[index(rank)].has_given_up; };
  if (std::ranges::any_of(absent, never_came)) {
    std::erase_if(absent, std::not_fn(never_came));
  }
  std::string text =
      absent.empty()
          ? fmt::format("all ranks came to {}, but did not all reach each other", meeting_point_)
          : fmt::format("missing at {}: rank{} {}",
                        meeting_point_,
                        absent.size() == 1 ? "" : "s",
                        fmt::join(absent, ", "));
  for (const auto& [reason, times] : refusals_) {
    text += fmt::format("; refused {} time{}: {}", times, times == 1 ? "" : "s", reason);
  }
  throw error{errc::timed_out, std::move(text), context_of(plan_, std::move(absent))};
}

void head_meeting::leave() noexcept {
  for (const auto& each : acceptors_) {
    std::error_code ignored;  // closing what is closed is no failure
    each->close(ignored);
  }
  published_.reset();
  guests_.close_all();
  for (const place& each : places_) {
    each.answer->cancel();
  }
}

met_world meet_as_head(asio::io_context& io, const meeting_plan& plan) {
  return std::make_shared<head_meeting>(io, plan)->run();
}

}  // namespace spark_comm::rendezvous::detail
