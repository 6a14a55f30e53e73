// SPDX-License-Identifier: AGPL-3.0-only
// One framed connection on an event loop. Reading is bounded in size, and in time by `expire_at`;
// writing is a queue.
#pragma once

#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>
#include <spark_comm/rendezvous/detail/trust.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl/stream.hpp>
#include <asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

namespace spark_comm::rendezvous::detail {

struct frame {
  frame_kind kind = frame_kind::hello;
  bytes body;
};

/// Why a connection is of no more use.
enum class loss : std::uint8_t {
  closed,     ///< The peer closed it between two frames.
  cut_short,  ///< The peer closed it inside a frame.
  failed,     ///< The network or this side broke it.
  expired,    ///< The peer took too long.
  malformed,  ///< What came is not of this protocol, or larger than allowed here.
  untrusted,  ///< The two sides do not hold the same key, or only one holds any.
};

class connection_lost : public std::runtime_error {
 public:
  connection_lost(loss cause, const std::string& text, std::size_t got = 0, std::size_t of = 0)
      : std::runtime_error(text), cause_(cause), got_bytes_(got), of_bytes_(of) {}

  [[nodiscard]] loss cause() const noexcept { return cause_; }

  /// How much of the body of a frame cut short has come.
  [[nodiscard]] std::size_t got_bytes() const noexcept { return got_bytes_; }

  [[nodiscard]] std::size_t of_bytes() const noexcept { return of_bytes_; }

 private:
  loss cause_;
  std::size_t got_bytes_;
  std::size_t of_bytes_;
};

/// Which side of a connection this is.
enum class side : std::uint8_t {
  caller,  ///< It connected.
  called,  ///< It accepted.
};

/// Threads: the one that runs the loop.
class connection : public std::enable_shared_from_this<connection> {
 public:
  /// With `keys` the connection is encrypted; nothing else passes before `secure` is done.
  connection(tcp::socket socket, side mine, std::shared_ptr<trust> keys);

  [[nodiscard]] const tcp::endpoint& local() const noexcept { return local_; }

  [[nodiscard]] const tcp::endpoint& remote() const noexcept { return remote_; }

  /// Both sides prove to each other that they hold the key; nothing to do without one.
  /// Throws: connection_lost.
  [[nodiscard]] asio::awaitable<void> secure();

  /// The next frame. One caller at a time.
  /// Throws: connection_lost; malformed for a body of more than `limit_bytes`.
  [[nodiscard]] asio::awaitable<frame> receive(std::size_t limit_bytes);

  /// Queues a frame. Failures show in `receive`.
  void post(frame_kind kind, std::span<const std::byte> body = {});

  /// Everything that was posted has been handed to the network, or never will be.
  [[nodiscard]] bool is_flushed() const noexcept { return queue_.empty() || !is_open(); }

  /// Closes the connection at `when`, unless told otherwise before.
  void expire_at(time_point when);
  void never_expire();

  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }

  void close() noexcept;

 private:
  asio::awaitable<std::size_t> read(asio::mutable_buffer into, std::error_code& failure);
  void write_next();
  void fail(loss cause, std::string text) noexcept;
  [[noreturn]] void throw_lost(const std::error_code& failure,
                               std::size_t got,
                               std::size_t of) const;

  std::shared_ptr<trust> keys_;
  side side_;
  tcp::socket socket_;
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
  asio::steady_timer expiry_;
  tcp::endpoint local_;
  tcp::endpoint remote_;
  std::deque<bytes> queue_;
  std::size_t queued_bytes_ = 0;
  bool is_writable_ = true;
  loss cause_ = loss::failed;
  std::string cause_text_;  // why this side closed it; empty while it did not
};

}  // namespace spark_comm::rendezvous::detail
