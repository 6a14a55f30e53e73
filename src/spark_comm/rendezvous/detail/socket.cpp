// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>

#include <asio/error.hpp>
#include <asio/ip/v6_only.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace spark_comm::rendezvous::detail {
namespace {

using namespace std::chrono_literals;

constexpr int backlog = 1024;
constexpr auto descriptor_shortage_pause = 50ms;

// A host that vanished without a word is noticed after about idle + interval * probes seconds.
constexpr int keepalive_idle_s = 3;
constexpr int keepalive_interval_s = 1;
constexpr int keepalive_probes = 5;
constexpr int unacknowledged_limit_ms = 8000;

std::error_code last_error() {
  return {errno, std::generic_category()};
}

void set_option(int fd, int level, int name, int value, const char* text) {
  if (::setsockopt(fd, level, name, &value, sizeof value) != 0) {
    throw std::system_error{last_error(), text};
  }
}

void tune(tcp::socket& socket) {
  const int fd = socket.native_handle();
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE");
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, keepalive_idle_s, "TCP_KEEPIDLE");
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, keepalive_interval_s, "TCP_KEEPINTVL");
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, keepalive_probes, "TCP_KEEPCNT");
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, unacknowledged_limit_ms, "TCP_USER_TIMEOUT");
}

// Asio opens its sockets without SOCK_CLOEXEC, and a later fcntl would leave a gap for a fork.
int open_native(const tcp& protocol) {
  const int fd =
      ::socket(protocol.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (fd < 0) {
    throw std::system_error{last_error(), "socket"};
  }
  return fd;
}

template <typename Socket>
Socket adopt(const asio::any_io_executor& executor, const tcp& protocol, int fd) {
  Socket socket{executor};
  std::error_code failure;
  socket.assign(protocol, fd, failure);
  if (failure) {
    ::close(fd);
    throw std::system_error{failure, "assign"};
  }
  return socket;
}

tcp protocol_of(int family) {
  return family == AF_INET6 ? tcp::v6() : tcp::v4();
}

bool is_descriptor_shortage(int number) {
  return number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM;
}

/// Nothing if the connection was gone before it could be taken.
std::optional<tcp::socket> take_connection(tcp::acceptor& acceptor, int& failure) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  const int fd = ::accept4(acceptor.native_handle(),
                           reinterpret_cast<sockaddr*>(&peer),
                           &length,
                           SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    failure = errno;
    return std::nullopt;
  }
  auto socket = adopt<tcp::socket>(acceptor.get_executor(), protocol_of(peer.ss_family), fd);
  try {
    tune(socket);
  } catch (const std::system_error&) {
    return std::nullopt;  // reset between the two calls
  }
  return socket;
}

bool is_absent_family(const std::error_code& code) {
  return code == std::errc::address_not_available ||
         code == std::errc::address_family_not_supported ||
         code == std::errc::protocol_not_supported;
}

}  // namespace

std::string to_text(const tcp::endpoint& where) {
  return to_string(address{.host = where.address().to_string(), .port = where.port()});
}

std::optional<tcp::endpoint> try_parse_numeric(const std::string& text) {
  try {
    const address where = parse_address(text);
    std::error_code is_name;
    const auto number = asio::ip::make_address(where.host, is_name);
    return is_name ? std::nullopt : std::optional{tcp::endpoint{number, where.port}};
  } catch (const error&) {
    return std::nullopt;
  }
}

tcp::endpoint any_endpoint() noexcept {
  const int probe = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
  if (probe < 0) {
    return {tcp::v4(), 0};
  }
  ::close(probe);
  return {tcp::v6(), 0};
}

tcp::acceptor listen_at(asio::io_context& io, const tcp::endpoint& where) {
  try {
    auto acceptor =
        adopt<tcp::acceptor>(io.get_executor(), where.protocol(), open_native(where.protocol()));
    acceptor.set_option(tcp::acceptor::reuse_address{true});
    if (where.address().is_v6()) {
      acceptor.set_option(asio::ip::v6_only{!where.address().is_unspecified()});
    }
    acceptor.bind(where);
    acceptor.listen(backlog);
    return acceptor;
  } catch (const std::system_error& failure) {
    throw_errno("bind", fmt::format("cannot listen at {}", to_text(where)), failure.code().value());
  }
}

std::vector<tcp::acceptor> listen_at_all(asio::io_context& io,
                                         const std::vector<tcp::endpoint>& endpoints) {
  std::vector<tcp::acceptor> listeners;
  std::optional<error> absent;
  for (tcp::endpoint where : endpoints) {
    if (!listeners.empty() && where.port() == 0) {
      where.port(listeners.front().local_endpoint().port());
    }
    try {
      listeners.push_back(listen_at(io, where));
    } catch (const error& failure) {
      const std::error_code code{static_cast<int>(failure.native().number),
                                 std::generic_category()};
      if (!is_absent_family(code)) {
        throw;
      }
      absent = failure;
    }
  }
  if (listeners.empty() && absent) {
    throw error{*absent};
  }
  return listeners;
}

asio::awaitable<tcp::socket> accept(std::shared_ptr<tcp::acceptor> acceptor) {
  for (;;) {
    co_await acceptor->async_wait(tcp::acceptor::wait_read, asio::use_awaitable);
    int failure = 0;
    auto taken = take_connection(*acceptor, failure);
    if (taken) {
      co_return std::move(*taken);
    }
    if (is_descriptor_shortage(failure)) {
      co_await pause_for(descriptor_shortage_pause);
    }
  }
}

asio::awaitable<tcp::socket> connect(asio::io_context& io, tcp::endpoint where, duration limit) {
  auto socket =
      adopt<tcp::socket>(io.get_executor(), where.protocol(), open_native(where.protocol()));
  asio::steady_timer watch{io, limit};
  bool is_late = false;
  watch.async_wait([&](const std::error_code& cancelled) {
    if (!cancelled) {
      is_late = true;
      socket.cancel();
    }
  });
  std::error_code failure;
  co_await socket.async_connect(where, asio::redirect_error(asio::use_awaitable, failure));
  watch.cancel();
  if (is_late) {
    throw std::system_error{asio::error::timed_out};
  }
  if (failure) {
    throw std::system_error{failure};
  }
  // A port of the ephemeral range that nobody listens at can be met by our own call.
  if (socket.local_endpoint() == socket.remote_endpoint()) {
    throw std::system_error{asio::error::connection_refused};
  }
  tune(socket);
  co_return socket;
}

asio::awaitable<void> pause_for(duration span) {
  asio::steady_timer timer{co_await asio::this_coro::executor, span};
  std::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace spark_comm::rendezvous::detail
