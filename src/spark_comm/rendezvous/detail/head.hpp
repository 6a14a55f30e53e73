// SPDX-License-Identifier: AGPL-3.0-only
// The head's side of a meeting.
#pragma once

#include <spark_comm/rendezvous/detail/admission.hpp>
#include <spark_comm/rendezvous/detail/connection.hpp>
#include <spark_comm/rendezvous/detail/file_point.hpp>
#include <spark_comm/rendezvous/detail/held_port.hpp>
#include <spark_comm/rendezvous/detail/meeting.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm::rendezvous::detail {

/// Lives on one loop; its coroutines keep it alive until they have ended.
class head_meeting : public std::enable_shared_from_this<head_meeting> {
 public:
  head_meeting(asio::io_context& io, meeting_plan plan);

  /// Listens, and returns when all have met.
  /// Throws: timed_out, mismatch (a rank built otherwise came), peer_lost, system_failed.
  [[nodiscard]] met_world run();

  void fail(std::exception_ptr failure) noexcept;

 private:
  /// A rank's place while the meeting lasts.
  struct place {
    std::shared_ptr<connection> line;
    std::string listener;
    bool is_ready = false;
    bool has_committed = false;
    bool has_given_up = false;                   // it was here, and its own deadline passed
    std::unique_ptr<asio::steady_timer> answer;  // cancelled when the holder answers a ping
  };

  // head_door.cpp
  void open();
  void listen_behind_file(const std::string& path);
  void listen_at_address();
  void listen_again();
  void hold_port(const tcp::endpoint& like);
  asio::awaitable<void> look_for(int rank);

  asio::awaitable<void> accept_guests(std::shared_ptr<tcp::acceptor> acceptor);
  asio::awaitable<void> receive_guest(std::shared_ptr<connection> guest);
  asio::awaitable<admission> decide(const hello_message& hello);
  asio::awaitable<bool> still_answers(int rank);
  asio::awaitable<void> turn_away(std::shared_ptr<connection> guest, std::string reason);
  asio::awaitable<void> tend(int rank, std::shared_ptr<connection> line);
  void handle(int rank, place& where, const frame& received);
  void take_place(const hello_message& hello, std::shared_ptr<connection> line);
  void free_place(int rank, const std::string& why);
  void note_refusal(const std::string& reason);
  void house_changed();
  void tell_all(frame_kind kind, const bytes& body);

  [[nodiscard]] std::vector<int> missing() const;
  void seat_members();
  [[nodiscard]] int place_of(int member) const;
  [[nodiscard]] bool everybody(bool place::* has_done) const;
  [[noreturn]] void throw_timed_out() const;
  void leave() noexcept;

  asio::io_context& io_;
  meeting_plan plan_;
  int host_;  // this rank
  std::uint64_t generation_;
  seating table_;
  std::vector<place> places_;  // by rank; the host's has a listener only
  std::vector<bool> is_gone_;  // by rank: not waited for, in a meeting of survivors
  std::vector<int> members_;   // who is in the present round; empty while somebody is missing
  std::shared_ptr<const held_port> port_;
  std::vector<std::shared_ptr<tcp::acceptor>> acceptors_;
  std::string meeting_point_;
  std::optional<published_point> published_;
  waiting_room guests_;
  std::map<std::string, int> refusals_;
  std::uint32_t round_ = 0;
  bool is_committing_ = false;
  bool is_over_ = false;
  std::exception_ptr failure_;
};

}  // namespace spark_comm::rendezvous::detail
