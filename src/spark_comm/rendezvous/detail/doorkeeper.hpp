// SPDX-License-Identifier: AGPL-3.0-only
// Answers at a rank's own port while nobody meets there: who calls is told so, and to call again.
#pragma once

#include <spark_comm/rendezvous/detail/meeting.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>
#include <spark_comm/rendezvous/detail/trust.hpp>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <memory>
#include <string>

namespace spark_comm::rendezvous::detail {

/// Lives on one loop.
class doorkeeper : public std::enable_shared_from_this<doorkeeper> {
 public:
  /// `reason` is what callers are told.
  doorkeeper(asio::io_context& io,
             std::shared_ptr<tcp::acceptor> door,
             std::shared_ptr<trust> keys,
             std::string reason);

  void start();

  /// Lets nobody in any more. Who: the loop's thread.
  void stop() noexcept;

  /// For `spawn`: a door that fails is closed, and that is all.
  void fail(const std::exception_ptr& failure) noexcept;

 private:
  asio::awaitable<void> accept_guests();
  asio::awaitable<void> send_away(std::shared_ptr<connection> guest);

  asio::io_context& io_;
  std::shared_ptr<tcp::acceptor> door_;
  std::shared_ptr<trust> keys_;
  std::string reason_;
  waiting_room guests_;
};

}  // namespace spark_comm::rendezvous::detail
