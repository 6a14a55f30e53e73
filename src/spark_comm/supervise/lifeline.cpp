// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/supervise/heartbeat.hpp>
#include <spark_comm/supervise/lane_compare.hpp>
#include <spark_comm/supervise/lifeline.hpp>
#include <spark_comm/supervise/options.hpp>
#include <spark_comm/supervise/signature.hpp>
#include <spark_comm/supervise/signature_log.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spark_comm {
namespace {

constexpr std::size_t collective_tail = 16;
constexpr std::size_t pair_tail = 8;

std::size_t place(lane_kind kind) noexcept {
  return static_cast<std::size_t>(kind);
}

/// Did a stretch of history, asked for because the lanes differ, show where or at least move on?
bool has_progressed(const lane_verdict& verdict,
                    const lane_report& theirs,
                    std::uint64_t matched) noexcept {
  switch (verdict.relation) {
    case lane_relation::parted:           return true;
    case lane_relation::unknown:
    case lane_relation::parted_somewhere: return false;
    case lane_relation::level:
    case lane_relation::peer_behind:
    case lane_relation::peer_ahead:       return theirs.submitted > matched;
  }
  return false;
}

divergence unlocated_after(std::uint64_t matched) noexcept {
  return {.kind = mismatch_kind::unlocated, .ordinal = matched, .mine = {}, .theirs = {}};
}

}  // namespace

lifeline::lifeline(rendezvous::session& line,
                   const signature_log& log,
                   const lifeline_settings& settings,
                   std::function<void()> on_news,
                   diagnostics diagnosis,
                   const time_source& time)
    : line_(&line),
      log_(&log),
      settings_(settings),
      on_news_(std::move(on_news)),
      diagnosis_(std::move(diagnosis)),
      time_(&time),
      peers_(static_cast<std::size_t>(line.world_size())) {
  for (int rank = 0; rank < line.world_size(); ++rank) {
    state_of(rank).seen.rank = rank;
  }
}

void lifeline::start() {
  {
    const std::scoped_lock lock{mutex_};
    const time_point now = time_->now();
    last_tick_ = now;
    next_beat_ = now;
    for (peer_state& peer : peers_) {
      peer.seen.last_heard = now;
    }
  }
  line_->start(*this);
}

time_point lifeline::tick(time_point now) noexcept {
  {
    const std::scoped_lock lock{mutex_};
    const duration gap = now - last_tick_;
    last_tick_ = now;
    if (gap > 2 * settings_.heartbeat_interval) {
      // This process itself stood still: what peers said meanwhile still waits to be read.
      for (peer_state& peer : peers_) {
        peer.seen.last_heard = std::min(peer.seen.last_heard + gap, now);
      }
    }
    if (now < next_beat_) {
      return next_beat_;
    }
  }
  beat(now);
  return now + settings_.heartbeat_interval;
}

void lifeline::beat(time_point now) noexcept {
  try {
    std::uint64_t number = 0;
    std::vector<int> targets;
    {
      const std::scoped_lock lock{mutex_};
      next_beat_ = now + settings_.heartbeat_interval;
      number = ++beats_;
      for (const peer_state& peer : peers_) {
        if (peer.seen.rank != line_->rank() && peer.seen.connection == peer_connection::open) {
          targets.push_back(peer.seen.rank);
        }
      }
    }
    heartbeat message{
        .number = number,
        .last_sequence = log_->last_sequence(),
        .collectives = report_of(log_->lane(lane_kind::collectives, 0), collective_tail),
        .outbound = {},
        .inbound = {}};
    for (const int peer : targets) {
      message.outbound = report_of(log_->lane(lane_kind::outbound, peer), pair_tail);
      message.inbound = report_of(log_->lane(lane_kind::inbound, peer), pair_tail);
      send_to(peer, message);
    }
  } catch (const std::exception& failure) {
    // This beat is lost, the next may not be; the peers' silence limit bounds it.
    diagnosis_.report(failure, "lifeline: heartbeat");
  }
}

void lifeline::send_to(int peer, const lifeline_message& message) {
  line_->send(peer, encode(settings_.generation, message));
}

void lifeline::send_to_all(const lifeline_message& message) noexcept {
  try {
    const std::vector<std::byte> bytes = encode(settings_.generation, message);
    for (int peer = 0; peer < line_->world_size(); ++peer) {
      if (peer != line_->rank()) {
        line_->send(peer, bytes);
      }
    }
  } catch (const std::exception& failure) {
    // The peers still learn of it, by the closed connection.
    diagnosis_.report(failure, "lifeline: last word");
  }
}

void lifeline::announce_failure(const failure_notice& notice) noexcept {
  {
    const std::scoped_lock lock{mutex_};
    if (std::exchange(is_last_word_said_, true)) {
      return;
    }
  }
  send_to_all(notice);
}

void lifeline::say_farewell() noexcept {
  {
    const std::scoped_lock lock{mutex_};
    if (std::exchange(is_last_word_said_, true)) {
      return;
    }
  }
  // The final counts go ahead of it: whoever still waits can see that our part was issued.
  beat(time_->now());
  send_to_all(farewell{});
}

std::vector<peer_observation> lifeline::peers() const {
  const std::scoped_lock lock{mutex_};
  std::vector<peer_observation> others;
  others.reserve(peers_.size());
  for (const peer_state& peer : peers_) {
    if (peer.seen.rank != line_->rank()) {
      others.push_back(peer.seen);
    }
  }
  return others;
}

agreement lifeline::agree(std::uint64_t ordinal, const deadline& until) {
  beat(time_->now());
  for (int peer = 0; peer < line_->world_size(); ++peer) {
    if (peer != line_->rank()) {
      check_lane(peer, lane_kind::collectives, last_report(peer), false);
    }
  }
  const auto state = [&] {
    agreement result = agreement::agreed;
    for (const peer_state& peer : peers_) {
      const bool is_lost =
          peer.seen.connection == peer_connection::closed || peer.seen.failure || peer.seen.parted;
      if (peer.seen.rank == line_->rank()) {
        continue;
      }
      if (is_lost) {
        return agreement::refused;
      }
      if (peer.matched[place(lane_kind::collectives)] < ordinal) {
        result = agreement::timed_out;  // unless it comes about
      }
    }
    return result;
  };
  std::unique_lock lock{mutex_};
  heard_.wait_until(lock, until.at(), [&] { return state() != agreement::timed_out; });
  return state();
}

lane_report lifeline::last_report(int peer) {
  const std::scoped_lock lock{mutex_};
  return state_of(peer).collectives;
}

void lifeline::on_message(int peer, std::span<const std::byte> message) noexcept {
  try {
    const auto decoded = decode(message);
    if (!decoded) {
      on_closed(peer, "it sent a message that cannot be read");
      return;
    }
    if (decoded->generation != settings_.generation) {
      return;  // of a round that is over
    }
    {
      const std::scoped_lock lock{mutex_};
      state_of(peer).seen.last_heard = time_->now();
    }
    std::visit([&](const auto& body) { receive(peer, body); }, decoded->message);
  } catch (const std::exception& failure) {
    // As if the message had been lost.
    diagnosis_.report(failure, "lifeline: message");
  }
}

void lifeline::receive(int peer, const heartbeat& beat) {
  {
    const std::scoped_lock lock{mutex_};
    state_of(peer).collectives = beat.collectives;
    peer_observation& seen = state_of(peer).seen;
    seen.last_sequence = beat.last_sequence;
    seen.collectives_submitted = beat.collectives.submitted;
    seen.collectives_completed = beat.collectives.completed;
    seen.sends_submitted = beat.outbound.submitted;
    seen.receives_submitted = beat.inbound.submitted;
  }
  check_lane(peer, lane_kind::collectives, beat.collectives, false);
  check_lane(peer, lane_kind::inbound, beat.outbound, false);
  check_lane(peer, lane_kind::outbound, beat.inbound, false);
}

void lifeline::check_lane(int peer, lane_kind mine, const lane_report& theirs, bool is_history) {
  if (settings_.check == mismatch_check::off) {
    return;
  }
  std::optional<history_request> question;
  bool is_news = false;
  {
    const std::scoped_lock lock{mutex_};
    peer_state& state = state_of(peer);
    std::uint64_t& matched = state.matched[place(mine)];
    const lane_verdict verdict = compare(log_->lane(mine, peer), theirs, matched);
    bool& is_asked = state.is_history_asked[place(mine)];
    if (verdict.relation == lane_relation::parted_somewhere && !is_history && !is_asked) {
      is_asked = true;
      question = history_request{.lane = counterpart(mine), .first = verdict.matched + 1};
    }
    const bool is_lost_place = is_history && is_asked && !has_progressed(verdict, theirs, matched);
    if (is_history) {
      is_asked = false;  // should they agree as far as this stretch goes, the next beat asks on
    }
    matched = verdict.matched;
    if ((verdict.found || is_lost_place) && !state.seen.parted) {
      state.seen.parted = verdict.found.value_or(unlocated_after(matched));
      is_news = true;
    }
  }
  heard_.notify_all();
  if (question) {
    send_to(peer, *question);
  }
  if (is_news) {
    on_news_();
  }
}

void lifeline::receive(int peer, const failure_notice& notice) {
  {
    const std::scoped_lock lock{mutex_};
    auto& failure = state_of(peer).seen.failure;
    if (failure) {
      return;
    }
    failure = notice;
  }
  heard_.notify_all();
  on_news_();
}

void lifeline::receive(int peer, const history_request& request) {
  send_to(peer,
          history_reply{
              .lane = request.lane,
              .part = history_of(log_->lane(request.lane, peer), request.first, most_history)});
}

void lifeline::receive(int peer, const history_reply& reply) {
  check_lane(peer, counterpart(reply.lane), reply.part, true);
}

void lifeline::receive(int peer, const farewell& /*nothing*/) {
  {
    const std::scoped_lock lock{mutex_};
    state_of(peer).seen.connection = peer_connection::left;
  }
  heard_.notify_all();
  on_news_();
}

void lifeline::on_closed(int peer, const std::string& reason) noexcept {
  {
    const std::scoped_lock lock{mutex_};
    peer_observation& seen = state_of(peer).seen;
    if (seen.connection != peer_connection::open) {
      return;  // it said farewell, or was reported before
    }
    seen.connection = peer_connection::closed;
    try {
      seen.close_reason = reason;
    } catch (...) {
      // Out of memory: the fact matters more than the words.
      seen.close_reason.clear();
    }
  }
  heard_.notify_all();
  on_news_();
}

}  // namespace spark_comm
