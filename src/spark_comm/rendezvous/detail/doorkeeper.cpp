// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/detail/connection.hpp>
#include <spark_comm/rendezvous/detail/doorkeeper.hpp>
#include <spark_comm/rendezvous/detail/meeting.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>

#include <asio/io_context.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace spark_comm::rendezvous::detail {
namespace {

// For a caller to say who it is, and to read the answer.
constexpr auto guest_limit = std::chrono::seconds{2};

}  // namespace

doorkeeper::doorkeeper(asio::io_context& io,
                       std::shared_ptr<tcp::acceptor> door,
                       std::shared_ptr<trust> keys,
                       std::string reason)
    : io_(io), door_(std::move(door)), keys_(std::move(keys)), reason_(std::move(reason)) {}

void doorkeeper::start() {
  spawn(io_, shared_from_this(), [this] { return accept_guests(); });
}

void doorkeeper::stop() noexcept {
  std::error_code ignored;  // closing what is closed is no failure
  door_->close(ignored);
  guests_.close_all();
}

void doorkeeper::fail(const std::exception_ptr& /*failure*/) noexcept {
  stop();
}

asio::awaitable<void> doorkeeper::accept_guests() {
  try {
    for (;;) {
      auto guest = std::make_shared<connection>(co_await accept(door_), side::called, keys_);
      guests_.enter(guest);
      guest->expire_at(steady_time().now() + guest_limit);
      spawn(io_, shared_from_this(), [this, guest] { return send_away(guest); });
    }
  } catch (const std::system_error&) {
    co_return;  // the door is closed
  }
}

asio::awaitable<void> doorkeeper::send_away(std::shared_ptr<connection> guest) {
  try {
    co_await guest->secure();
    const frame first = co_await guest->receive(max_handshake_bytes);
    if (first.kind == frame_kind::hello) {
      guest->post(frame_kind::busy, encode(refusal_message{.reason = reason_}));
      co_await guest->receive(0);  // its end closes when it has read the reason
    }
  } catch (const connection_lost&) {
    // A probe, a stranger, or one that has read its answer.
  }
  guest->close();
}

}  // namespace spark_comm::rendezvous::detail
