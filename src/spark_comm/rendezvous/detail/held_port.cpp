// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/detail/held_port.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>

#include <asio/io_context.hpp>
#include <asio/ip/address.hpp>
#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <unistd.h>
#include <utility>

namespace spark_comm::rendezvous {
namespace {

// A socket of both families sees an IPv4 caller under an IPv6 address, where nobody can listen.
asio::ip::address own_family(const asio::ip::address& where) {
  return where.is_v6() && where.to_v6().is_v4_mapped()
             ? asio::ip::make_address_v4(asio::ip::v4_mapped, where.to_v6())
             : where;
}

}  // namespace

held_port::held_port(int socket, detail::tcp::endpoint where) noexcept
    : socket_(socket), where_(std::move(where)) {}

held_port::~held_port() {
  ::close(socket_);
}

std::shared_ptr<const held_port> held_port::listen(asio::io_context& io,
                                                   const asio::ip::address& where) {
  detail::tcp::acceptor acceptor =
      detail::listen_at(io, detail::tcp::endpoint{own_family(where), 0});
  const detail::tcp::endpoint bound = acceptor.local_endpoint();
  return std::shared_ptr<const held_port>{new held_port{acceptor.release(), bound}};
}

std::shared_ptr<detail::tcp::acceptor> held_port::serve(asio::io_context& io) const {
  const int copy = ::fcntl(socket_, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) {
    throw_errno("fcntl", "no descriptor for " + detail::to_text(where_), errno);
  }
  return std::make_shared<detail::tcp::acceptor>(io, where_.protocol(), copy);
}

}  // namespace spark_comm::rendezvous
