// SPDX-License-Identifier: AGPL-3.0-only
// TCP sockets as this layer wants them: closed on exec from their birth, never blocking, without
// Nagle's delay, and with a limit to how long a lost host goes unnoticed.
#pragma once

#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/address.hpp>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm::rendezvous::detail {

using asio::ip::tcp;

/// Text of an endpoint in the form that `parse_address` reads.
[[nodiscard]] std::string to_text(const tcp::endpoint& where);

/// The way back; nothing for a name.
[[nodiscard]] std::optional<tcp::endpoint> try_parse_numeric(const std::string& text);

/// What a name leads to. Exactly one of the two is empty.
struct resolution {
  std::vector<tcp::endpoint> endpoints;  ///< In the resolver's order.
  std::string failure;                   ///< The resolver's own words.
};

/// Looks a host up; a numeric address needs no look-up. Gives up at `until`; the system's resolver
/// cannot be interrupted, so its thread may live on for as long as the resolver takes.
[[nodiscard]] resolution resolve(const address& where, const deadline& until);

/// Port 0 on every interface, of both families where the machine has IPv6.
[[nodiscard]] tcp::endpoint any_endpoint() noexcept;

/// A socket that listens at `where` (SO_REUSEADDR, so that a restart works at once; never
/// SO_REUSEPORT, which would split the workers between two heads).
/// Throws: system_failed with the address.
[[nodiscard]] tcp::acceptor listen_at(asio::io_context& io, const tcp::endpoint& where);

/// Listens at all of `endpoints` that this machine has, with one port for all.
/// Throws: system_failed if one is in use, or if none can be had.
[[nodiscard]] std::vector<tcp::acceptor> listen_at_all(asio::io_context& io,
                                                       const std::vector<tcp::endpoint>& endpoints);

/// The next connection. Waits out a shortage of descriptors.
/// Throws: std::system_error when the acceptor is cancelled or closed.
[[nodiscard]] asio::awaitable<tcp::socket> accept(std::shared_ptr<tcp::acceptor> acceptor);

/// Connects within `limit`.
/// Throws: std::system_error.
[[nodiscard]] asio::awaitable<tcp::socket> connect(asio::io_context& io,
                                                   tcp::endpoint where,
                                                   duration limit);

/// Sleeps on the loop.
[[nodiscard]] asio::awaitable<void> pause_for(duration span);

}  // namespace spark_comm::rendezvous::detail
