// SPDX-License-Identifier: AGPL-3.0-only
// A peer that does with its socket what no rank would do. Every read is bounded.
#pragma once

#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>

#include <arpa/inet.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace spark_comm::rendezvous::testing {

/// A blocking IPv4 socket on loopback that gives up reading after five seconds.
class raw_socket {
 public:
  explicit raw_socket(int fd) : fd_(fd) {
    if (fd_ < 0) {
      throw std::runtime_error{"no socket"};
    }
    const timeval limit{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }

  raw_socket() : raw_socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}

  raw_socket(const raw_socket&) = delete;
  raw_socket& operator=(const raw_socket&) = delete;

  raw_socket(raw_socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  raw_socket& operator=(raw_socket&&) = delete;

  ~raw_socket() { close(); }

  [[nodiscard]] int fd() const { return fd_; }

  void close() {
    if (fd_ >= 0) {
      ::close(std::exchange(fd_, -1));
    }
  }

  void stop_sending() const { ::shutdown(fd_, SHUT_WR); }

  void send(std::span<const std::byte> data) const {
    while (!data.empty()) {
      const auto put = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
      if (put <= 0) {
        return;
      }
      data = data.subspan(static_cast<std::size_t>(put));
    }
  }

  void send(std::string_view text) const { send(std::as_bytes(std::span{text})); }

  void send_frame(detail::frame_kind kind, std::span<const std::byte> body = {}) const {
    send(detail::encode_header(
        {.body_bytes = static_cast<std::uint32_t>(body.size()), .kind = kind}));
    send(body);
  }

  /// Up to `size` bytes, fewer at the end of the connection or of patience.
  [[nodiscard]] bytes read(std::size_t size) const {
    bytes out(size);
    std::size_t used = 0;
    while (used < size) {
      const auto got = ::recv(fd_, out.data() + used, size - used, 0);
      if (got <= 0) {
        break;
      }
      used += static_cast<std::size_t>(got);
    }
    out.resize(used);
    return out;
  }

  /// The body of the next frame of this kind; others are skipped. Nothing at the end.
  [[nodiscard]] std::optional<bytes> read_frame(detail::frame_kind kind) const {
    for (;;) {
      const bytes raw = read(detail::frame_header_bytes);
      if (raw.size() < detail::frame_header_bytes) {
        return std::nullopt;
      }
      const auto header = detail::decode_header(std::span{raw}.first<detail::frame_header_bytes>());
      if (!header) {
        return std::nullopt;
      }
      bytes body = read(header->body_bytes);
      if (header->kind == kind) {
        return body;
      }
    }
  }

 private:
  int fd_;
};

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  where.sin_port = htons(port);
  return where;
}

inline raw_socket connect_to(const std::string& where) {
  raw_socket out;
  const sockaddr_in to = loopback(parse_address(where).port);
  if (::connect(out.fd(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    throw std::runtime_error{"cannot connect to " + where};
  }
  return out;
}

/// Listens on loopback, or only holds the port so that nobody else is given it.
class raw_listener {
 public:
  enum class mode : std::uint8_t { listens, holds_port };

  explicit raw_listener(mode how = mode::listens) {
    const int on = 1;
    ::setsockopt(socket_.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    if (::bind(socket_.fd(), reinterpret_cast<sockaddr*>(&at), size) != 0 ||
        ::getsockname(socket_.fd(), reinterpret_cast<sockaddr*>(&at), &size) != 0) {
      throw std::runtime_error{"cannot bind"};
    }
    if (how == mode::listens && ::listen(socket_.fd(), 16) != 0) {
      throw std::runtime_error{"cannot listen"};
    }
    where_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }

  [[nodiscard]] const std::string& where() const { return where_; }

  [[nodiscard]] raw_socket accept() const {
    return raw_socket{::accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC)};
  }

  /// Whether somebody has connected and waits to be accepted.
  [[nodiscard]] bool has_guest() const {
    pollfd wanted{.fd = socket_.fd(), .events = POLLIN, .revents = 0};
    return ::poll(&wanted, 1, 0) != 0;
  }

  void close() { socket_.close(); }

 private:
  raw_socket socket_;
  std::string where_;
};

inline bytes raw_hello(int rank, int world_size, std::uint32_t version = detail::protocol_version) {
  detail::hello_message hello;
  hello.version = version;
  hello.rank = rank;
  hello.world_size = world_size;
  hello.process.fill(std::byte{0x5a});
  hello.listener = "127.0.0.1:1";
  return detail::encode(hello);
}

}  // namespace spark_comm::rendezvous::testing
