// SPDX-License-Identifier: AGPL-3.0-only
// A worker's side of a meeting: find the head, keep a place, meet the other workers.
#pragma once

#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/detail/connection.hpp>
#include <spark_comm/rendezvous/detail/meeting.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm::rendezvous::detail {

/// Lives on one loop; its coroutines keep it alive until they have ended.
class worker_meeting : public std::enable_shared_from_this<worker_meeting> {
 public:
  worker_meeting(asio::io_context& io, meeting_plan plan);

  /// Returns when all have met, or with nothing when this rank is to be the head. Whatever fails
  /// before that is tried again until the deadline.
  /// Throws: timed_out with the last obstacle, mismatch in the head's words, peer_lost for a head
  /// that closes inside a frame.
  [[nodiscard]] std::optional<met_world> run();

  void fail(std::exception_ptr failure) noexcept;

 private:
  asio::awaitable<void> find_head();
  [[nodiscard]] resolution locate_head() const;
  asio::awaitable<void> find_lowest();
  asio::awaitable<void> call_meeting_point();
  [[nodiscard]] duration share_of_time(std::size_t candidates) const;
  /// Whether there was a connection.
  asio::awaitable<bool> try_endpoint(tcp::endpoint where, duration share);
  asio::awaitable<void> attend(std::shared_ptr<connection> head, time_point limit);
  void turned_away(const bytes& body);
  void greet_head();
  void handle(const frame& received);
  [[noreturn]] void throw_timed_out() const;
  [[nodiscard]] std::string head_address() const;
  void leave() noexcept;

  [[nodiscard]] membership who() const {
    return plan_.options.again ? plan_.options.again->who : membership::whole_world;
  }

  // worker_mesh.cpp
  void open_listener(const tcp::endpoint& like);
  void close_listener() noexcept;
  [[nodiscard]] bool take_place_in(const roster_message& roster);
  void begin_round(roster_message roster);
  void end_round() noexcept;
  asio::awaitable<void> reach(int peer, std::uint32_t round);
  asio::awaitable<std::shared_ptr<connection>> call(tcp::endpoint where);
  asio::awaitable<void> accept_peers(std::shared_ptr<tcp::acceptor> acceptor);
  asio::awaitable<void> receive_peer(std::shared_ptr<connection> guest);
  void met(int peer, std::shared_ptr<connection> line);
  [[nodiscard]] bool has_met_all() const;

  asio::io_context& io_;
  meeting_plan plan_;
  world place_;  // as of the round that is going on
  nonce process_{};
  int host_ = 0;  // the head, as far as is known
  std::shared_ptr<const held_port> port_;
  std::shared_ptr<connection> head_;
  std::shared_ptr<tcp::acceptor> listener_;
  waiting_room guests_;
  std::optional<roster_message> roster_;            // of the round that is going on
  std::vector<tcp::endpoint> endpoints_;            // by rank, of that round
  std::vector<std::shared_ptr<connection>> peers_;  // by rank, of that round
  std::string obstacle_;      // what stands in the way, for the deadline's error
  std::vector<int> missing_;  // as the head said last
  bool has_answer_ = false;   // this head has said something
  bool is_over_ = false;
  bool is_lowest_ = false;
  std::exception_ptr failure_;
};

}  // namespace spark_comm::rendezvous::detail
