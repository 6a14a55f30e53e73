// SPDX-License-Identifier: AGPL-3.0-only
// The two sides of a meeting, up to the moment at which every rank holds a connection to every
// other.
//
//   worker                         head
//   hello ------------------------>  admits it, or: refusal
//          <-----------------------  waiting (who is missing), again at each change
//          <-----------------------  roster (round, token, listeners) when all are there
//   mesh hellos to lower ranks
//   ready (round) ---------------->
//          <-----------------------  commit (round) when all are ready
//   committed (round) ------------>  the meeting is over when all have said so
//
// The head is rank 0. When ranks meet again it is the lowest that is still there, and a rank that
// calls one which is not meeting anybody hears: busy.
//
// A worker whose deadline passes says farewell. A rank that is lost before the commit frees its
// place; the next full house is a new round.
#pragma once

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/detail/connection.hpp>
#include <spark_comm/rendezvous/detail/held_port.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>
#include <spark_comm/rendezvous/detail/trust.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace spark_comm::rendezvous::detail {

/// What a rank needs to meet.
struct meeting_plan {
  world place;
  hello mine;
  deadline until;
  meeting_options options;
  std::shared_ptr<trust> keys;  ///< Empty without a key.
};

/// What a meeting leaves behind.
struct met_world {
  world place;  ///< This rank's, by the new numbers; the address is where the meeting was.
  std::uint64_t generation = 0;
  std::vector<std::shared_ptr<connection>> peers;  ///< By rank; empty at the own one.
  std::vector<std::string> listeners;              ///< By rank.
  std::shared_ptr<const held_port> port;           ///< This rank's own; null for a rank alone.
};

[[nodiscard]] met_world meet_as_head(asio::io_context& io, const meeting_plan& plan);

/// Nothing when the ranks that meet again have lost all those below this one: it is the head then.
[[nodiscard]] std::optional<met_world> meet_as_worker(asio::io_context& io,
                                                      const meeting_plan& plan);

/// Where another rank is reached from here. A link-local address means nothing without the
/// interface, and the interface's name is each host's own: it is that of `local`.
/// Nothing for a text that is no numeric address.
[[nodiscard]] std::optional<tcp::endpoint> endpoint_seen_from(const tcp::endpoint& local,
                                                              const std::string& listener);

/// What every error of a meeting says about itself.
[[nodiscard]] error_context context_of(const meeting_plan& plan, std::vector<int> peers = {});

/// Without a key nothing may leave the machine.
/// Throws: invalid_argument for an endpoint off loopback.
void check_trust(const meeting_plan& plan, const std::vector<tcp::endpoint>& endpoints);

/// Random bytes from the system.
/// Throws: system_failed.
void fill_random(std::span<std::byte> out);

/// Runs the loop until `is_over` or the deadline.
/// Throws: what a coroutine put into `failure`; aborted when cancelled.
void run_until(asio::io_context& io,
               const deadline& until,
               const std::exception_ptr& failure,
               const std::function<bool()>& is_over,
               const std::stop_token& cancel);

/// Connections that have not proved anything yet. The oldest goes when there are too many: a flood
/// of silent strangers costs a bounded number of descriptors and does not keep the right rank out,
/// which speaks as soon as it is connected.
class waiting_room {
 public:
  void enter(const std::shared_ptr<connection>& guest);
  /// The guest has proved itself.
  void leave(const std::shared_ptr<connection>& guest) noexcept;
  void close_all() noexcept;

 private:
  std::deque<std::weak_ptr<connection>> guests_;
};

/// Starts a coroutine that keeps its owner alive and stores what it throws.
template <typename Owner, typename Start>
void spawn(asio::io_context& io, std::shared_ptr<Owner> owner, Start start) {
  asio::co_spawn(io, std::move(start), [owner](const std::exception_ptr& failure) {
    if (failure) {
      owner->fail(failure);
    }
  });
}

}  // namespace spark_comm::rendezvous::detail
