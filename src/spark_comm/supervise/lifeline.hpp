// SPDX-License-Identifier: AGPL-3.0-only
// How ranks keep each other informed: heartbeats, failures, farewells, and the mismatch check that
// travels with them. Knows what peers said; what follows from it is the watch policy's.
#pragma once

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/supervise/heartbeat.hpp>
#include <spark_comm/supervise/lane_compare.hpp>
#include <spark_comm/supervise/options.hpp>
#include <spark_comm/supervise/signature_log.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spark_comm {

struct lifeline_settings {
  std::uint32_t generation = 0;  ///< Messages of another one are ignored.
  mismatch_check check = mismatch_check::background;
  duration heartbeat_interval = std::chrono::milliseconds{100};
};

/// How asking the others before a launch ended.
enum class agreement : std::uint8_t {
  agreed,     ///< Every rank has issued the operation, and it matches.
  refused,    ///< One of them differs, failed or is gone; `peers` says who.
  timed_out,  ///< One of them has not issued it.
};

/// One rank's end of the lines to all others.
///
/// Threads: any. Takes no lock while it sends, and calls `on_news` without one.
class SPARK_COMM_API lifeline final : public rendezvous::session_listener {
 public:
  /// The session and the log must outlive it. `on_news` is called, on the session's thread, when
  /// something was learnt that should not wait for the next look.
  lifeline(rendezvous::session& line,
           const signature_log& log,
           const lifeline_settings& settings,
           std::function<void()> on_news,
           diagnostics diagnosis = {},
           const time_source& time = steady_time());

  /// Listens from now on; the silence of peers counts from here. Who: every rank, right after
  /// meeting.
  void start();

  /// Sends heartbeats if they are due and gives the time of the next. Cost: about 1 KiB a peer and
  /// beat.
  time_point tick(time_point now) noexcept;

  /// Sends heartbeats now, whether due or not.
  void beat(time_point now) noexcept;

  /// Tells everybody that this rank's communicator is no more. Only the first call counts.
  void announce_failure(const failure_notice& notice) noexcept;

  /// Tells everybody that this rank closes in order. Not after a failure was announced.
  void say_farewell() noexcept;

  /// Stops the session: nothing is heard or sent any more.
  void hang_up() noexcept { line_->stop(); }

  /// What is known of the others, in rank order.
  [[nodiscard]] std::vector<peer_observation> peers() const;

  /// Waits until every rank has issued the collective with this ordinal, and says whether it
  /// matches. For the strict check, after `append` and before the launch. Who: every rank.
  [[nodiscard]] agreement agree(std::uint64_t ordinal, const deadline& until);

  void on_message(int peer, std::span<const std::byte> message) noexcept override;
  void on_closed(int peer, const std::string& reason) noexcept override;

 private:
  struct peer_state {
    peer_observation seen;
    lane_report collectives;  // the last, for `agree`: the peer may have been first
    std::array<std::uint64_t, std::size(all_lane_kinds)> matched{};
    std::array<bool, std::size(all_lane_kinds)> is_history_asked{};
  };

  void receive(int peer, const heartbeat& beat);
  void receive(int peer, const failure_notice& notice);
  void receive(int peer, const history_request& request);
  void receive(int peer, const history_reply& reply);
  void receive(int peer, const farewell& nothing);

  void check_lane(int peer, lane_kind mine, const lane_report& theirs, bool is_history);
  [[nodiscard]] lane_report last_report(int peer);
  void send_to(int peer, const lifeline_message& message);
  void send_to_all(const lifeline_message& message) noexcept;

  [[nodiscard]] peer_state& state_of(int peer) { return peers_[static_cast<std::size_t>(peer)]; }

  rendezvous::session* line_;
  const signature_log* log_;
  lifeline_settings settings_;
  std::function<void()> on_news_;
  diagnostics diagnosis_;
  const time_source* time_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable heard_;
  std::vector<peer_state> peers_;  // by rank; this rank's own is never looked at
  std::uint64_t beats_ = 0;
  time_point last_tick_;
  time_point next_beat_;
  bool is_last_word_said_ = false;
};

}  // namespace spark_comm
