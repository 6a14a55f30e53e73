// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/detail/connection.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>
#include <spark_comm/rendezvous/detail/trust.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>

#include <array>
#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/ssl/error.hpp>
#include <asio/ssl/stream_base.hpp>
#include <asio/ssl/verify_mode.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <cstddef>
#include <fmt/format.h>
#include <memory>
#include <span>
#include <string>
#include <sys/socket.h>
#include <system_error>
#include <utility>

namespace spark_comm::rendezvous::detail {
namespace {

// A peer that leaves this much unread has stopped reading.
constexpr std::size_t max_queued_bytes = 4 * max_message_bytes;

/// TLS on a connection without a key: a client's first record (type 22, version 3.x), or the alert
/// (21) that answers a plain hello. As a frame either would be larger than any of a handshake.
bool is_tls(std::span<const std::byte, frame_header_bytes> raw) {
  return (raw[0] == std::byte{21} || raw[0] == std::byte{22}) && raw[1] == std::byte{3} &&
         raw[2] != std::byte{0};
}

/// Says "handshake failure" (RFC 8446, section 6) in a way that both a TLS client and a rank
/// without a key understand. Best effort, without waiting: only the text of the peer's error
/// depends on it.
void refuse_in_tls(tcp::socket& socket) noexcept {
  constexpr std::array<unsigned char, 7> alert = {21, 3, 3, 0, 2, 2, 40};
  (void)::send(socket.native_handle(), alert.data(), alert.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

connection::connection(tcp::socket socket, side mine, std::shared_ptr<trust> keys)
    : keys_(std::move(keys)),
      side_(mine),
      socket_(std::move(socket)),
      expiry_(socket_.get_executor()) {
  if (keys_) {
    tls_.emplace(socket_, keys_->context());
    if (side_ == side::caller) {
      // A server that comes with a certificate in place of the key is refused: no authority is
      // known.
      tls_->set_verify_mode(asio::ssl::verify_peer);
    }
  }
  std::error_code ignored;  // a connection that is gone already shows at its first use
  local_ = socket_.local_endpoint(ignored);
  remote_ = socket_.remote_endpoint(ignored);
}

asio::awaitable<void> connection::secure() {
  if (!tls_) {
    co_return;
  }
  const auto keep_alive = shared_from_this();
  const auto role =
      side_ == side::caller ? asio::ssl::stream_base::client : asio::ssl::stream_base::server;
  std::error_code failure;
  co_await tls_->async_handshake(role, asio::redirect_error(asio::use_awaitable, failure));
  if (cause_text_.empty() && is_distrust(failure)) {
    if (side_ == side::called) {
      refuse_in_tls(socket_);  // OpenSSL itself says nothing to a peer that does not speak TLS
    }
    fail(loss::untrusted, fmt::format("the two sides do not share a key ({})", failure.message()));
  } else if (!failure && !is_proved(tls_->native_handle())) {
    fail(loss::untrusted, "the peer did not prove that it holds the key");
  }
  if (failure || !cause_text_.empty()) {
    throw_lost(failure, 0, frame_header_bytes);
  }
}

asio::awaitable<std::size_t> connection::read(asio::mutable_buffer into, std::error_code& failure) {
  auto done = asio::redirect_error(asio::use_awaitable, failure);
  std::size_t got = 0;
  if (tls_) {
    got = co_await asio::async_read(*tls_, into, done);
    if (failure == asio::ssl::error::stream_truncated) {
      failure = asio::error::eof;  // frames carry their length: nothing can be cut unseen
    }
  } else {
    got = co_await asio::async_read(socket_, into, done);
  }
  co_return got;
}

asio::awaitable<frame> connection::receive(std::size_t limit_bytes) {
  const auto keep_alive = shared_from_this();
  std::array<std::byte, frame_header_bytes> raw{};
  std::error_code failure;
  std::size_t got = co_await read(asio::buffer(raw), failure);
  if (failure) {
    throw_lost(failure, got, raw.size());
  }
  if (limit_bytes <= max_handshake_bytes && is_tls(raw)) {
    refuse_in_tls(socket_);
    fail(loss::untrusted, "the peer was given a key, and this rank was not");
    throw_lost({}, 0, 0);
  }
  const auto header = decode_header(raw);
  if (!header) {
    fail(loss::malformed, "the peer does not speak this protocol");
    throw_lost({}, 0, 0);
  }
  if (header->body_bytes > limit_bytes) {
    fail(loss::malformed,
         fmt::format("the peer announced {} bytes where at most {} are allowed",
                     header->body_bytes,
                     limit_bytes));
    throw_lost({}, 0, 0);
  }
  frame out{.kind = header->kind, .body = bytes(header->body_bytes)};
  got = co_await read(asio::buffer(out.body), failure);
  if (failure) {
    throw_lost(failure, got, out.body.size());
  }
  co_return out;
}

void connection::throw_lost(const std::error_code& failure, std::size_t got, std::size_t of) const {
  if (!cause_text_.empty()) {
    throw connection_lost{cause_, cause_text_};
  }
  if (failure != asio::error::eof) {
    throw connection_lost{loss::failed, failure.message()};
  }
  // An end inside the header of a frame is one as well; `got` of a body may be zero.
  if (got == 0 && of == frame_header_bytes) {
    throw connection_lost{loss::closed, "the peer closed the connection"};
  }
  throw connection_lost{
      loss::cut_short, fmt::format("closed after {} of {} bytes", got, of), got, of};
}

void connection::post(frame_kind kind, std::span<const std::byte> body) {
  if (!is_open() || !is_writable_) {
    return;
  }
  const auto header =
      encode_header({.body_bytes = static_cast<std::uint32_t>(body.size()), .kind = kind});
  bytes data;
  data.reserve(header.size() + body.size());
  data.insert(data.end(), header.begin(), header.end());
  data.insert(data.end(), body.begin(), body.end());
  queued_bytes_ += data.size();
  queue_.push_back(std::move(data));
  if (queued_bytes_ > max_queued_bytes) {
    fail(loss::failed, fmt::format("the peer left {} bytes unread", queued_bytes_));
    return;
  }
  if (queue_.size() == 1) {
    write_next();
  }
}

void connection::write_next() {
  const auto written = [self = shared_from_this()](const std::error_code& failure, std::size_t) {
    if (failure) {
      // Not closed: what the peer said last may still be there to read.
      self->queue_.clear();
      self->is_writable_ = false;
      return;
    }
    self->queued_bytes_ -= self->queue_.front().size();
    self->queue_.pop_front();
    if (!self->queue_.empty() && self->is_open()) {
      self->write_next();
    }
  };
  if (tls_) {
    asio::async_write(*tls_, asio::buffer(queue_.front()), written);
  } else {
    asio::async_write(socket_, asio::buffer(queue_.front()), written);
  }
}

void connection::expire_at(time_point when) {
  expiry_.expires_at(when);
  expiry_.async_wait([weak = weak_from_this()](const std::error_code& cancelled) {
    const auto self = weak.lock();
    // A handler that was due when the timer was moved arrives without an error.
    if (!cancelled && self && self->expiry_.expiry() <= asio::steady_timer::clock_type::now()) {
      self->fail(loss::expired, "the peer took too long to answer");
    }
  });
}

void connection::never_expire() {
  expiry_.expires_at(time_point::max());
}

void connection::fail(loss cause, std::string text) noexcept {
  if (cause_text_.empty()) {
    cause_ = cause;
    cause_text_ = std::move(text);
  }
  close();
}

void connection::close() noexcept {
  std::error_code ignored;  // closing what is closed is no failure
  socket_.shutdown(tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
  never_expire();
}

}  // namespace spark_comm::rendezvous::detail
