// SPDX-License-Identifier: AGPL-3.0-only
// A listening socket that outlives the loops on which it is served: meetings and sessions of one
// communicator take turns at it.
#pragma once

#include <spark_comm/rendezvous/detail/socket.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <asio/io_context.hpp>
#include <asio/ip/address.hpp>
#include <memory>
#include <string>

namespace spark_comm::rendezvous {

/// While anybody has it, connections to it succeed, served or not: a refused one says that its
/// rank is gone.
class held_port {
 public:
  /// Listens at a port of `where` that the system chooses.
  /// Throws: system_failed.
  [[nodiscard]] static std::shared_ptr<const held_port> listen(asio::io_context& io,
                                                               const asio::ip::address& where);

  held_port(const held_port&) = delete;
  held_port& operator=(const held_port&) = delete;
  held_port(held_port&&) = delete;
  held_port& operator=(held_port&&) = delete;
  ~held_port();

  [[nodiscard]] const detail::tcp::endpoint& where() const noexcept { return where_; }

  /// Serves it on a loop. One at a time, or both get some of the callers.
  /// Throws: system_failed when no descriptor can be had.
  [[nodiscard]] std::shared_ptr<detail::tcp::acceptor> serve(asio::io_context& io) const;

 private:
  held_port(int socket, detail::tcp::endpoint where) noexcept;

  int socket_;
  detail::tcp::endpoint where_;
};

}  // namespace spark_comm::rendezvous
