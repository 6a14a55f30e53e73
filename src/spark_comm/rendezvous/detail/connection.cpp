// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/detail/connection.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>

#include <array>
#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <cstddef>
#include <fmt/format.h>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

namespace spark_comm::rendezvous::detail {
namespace {

// A peer that leaves this much unread has stopped reading.
constexpr std::size_t max_queued_bytes = 4 * max_message_bytes;

}  // namespace

connection::connection(tcp::socket socket)
    : socket_(std::move(socket)), expiry_(socket_.get_executor()) {
  std::error_code ignored;  // a connection that is gone already shows at its first use
  local_ = socket_.local_endpoint(ignored);
  remote_ = socket_.remote_endpoint(ignored);
}

asio::awaitable<frame> connection::receive(std::size_t limit_bytes) {
  const auto keep_alive = shared_from_this();
  std::array<std::byte, frame_header_bytes> raw{};
  std::error_code failure;
  std::size_t got = co_await asio::async_read(
      socket_, asio::buffer(raw), asio::redirect_error(asio::use_awaitable, failure));
  if (failure) {
    throw_lost(failure, got, raw.size());
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
  got = co_await asio::async_read(
      socket_, asio::buffer(out.body), asio::redirect_error(asio::use_awaitable, failure));
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
  asio::async_write(socket_,
                    asio::buffer(queue_.front()),
                    [self = shared_from_this()](const std::error_code& failure, std::size_t) {
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
                    });
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
