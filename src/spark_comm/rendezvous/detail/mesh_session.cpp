// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/detail/connection.hpp>
#include <spark_comm/rendezvous/detail/meeting.hpp>
#include <spark_comm/rendezvous/detail/mesh_session.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace spark_comm::rendezvous::detail {
namespace {

constexpr duration farewell_limit = std::chrono::milliseconds{200};
constexpr duration farewell_pause = std::chrono::milliseconds{1};
constexpr std::size_t step_prefix_bytes = sizeof(step_message::step);

std::size_t index(int rank) {
  return static_cast<std::size_t>(rank);
}

bytes copy_of(std::span<const std::byte> data) {
  return {data.begin(), data.end()};
}

void check_size(std::span<const std::byte> message) {
  if (message.size() > max_message_bytes) {
    throw error{
        errc::invalid_argument,
        fmt::format(
            "{} bytes are more than a message may have ({})", message.size(), max_message_bytes)};
  }
}

/// What a lost connection looks like to the caller, who counts its own bytes only.
std::string describe(const connection_lost& lost) {
  return lost.cause() == loss::cut_short && lost.got_bytes() >= step_prefix_bytes
             ? fmt::format("closed after {} of {} bytes",
                           lost.got_bytes() - step_prefix_bytes,
                           lost.of_bytes() - step_prefix_bytes)
             : lost.what();
}

}  // namespace

/// One collective call in progress. Shared with its coroutines, which may outlive the call.
struct mesh_session::step {
  std::uint64_t number = 0;
  error_context context;
  frame_kind expected = frame_kind::gather;
  std::vector<std::optional<bytes>> parts;  // by rank; the bodies that have come
  std::vector<int> awaited;                 // ranks that have not been heard
  std::exception_ptr failure;

  void fail(errc code, std::string text, int peer) {
    if (!failure) {
      error_context about = context;
      about.peers = {peer};
      failure = std::make_exception_ptr(error{code, std::move(text), std::move(about)});
    }
  }
};

mesh_session::mesh_session(std::unique_ptr<asio::io_context> io,
                           met_world met,
                           const meeting_plan& plan)
    : io_(std::move(io)),
      place_(met.place),
      met_(std::move(met)),
      keys_(plan.keys),
      log_(plan.options.log),
      cancel_(plan.options.cancel) {}

mesh_session::~mesh_session() {
  stop();
  if (thread_.joinable()) {
    thread_.join();  // stop() was called on the session's own thread
  }
}

std::shared_ptr<mesh_session::step> mesh_session::begin_step(const char* operation,
                                                             frame_kind expected) {
  if (broken_) {
    std::rethrow_exception(broken_);
  }
  if (listener_ != nullptr || is_stopping_) {
    throw error{errc::invalid_usage,
                fmt::format("{} is for a session that is not started or stopped", operation)};
  }
  auto now = std::make_shared<step>();
  now->number = ++steps_;
  now->expected = expected;
  now->parts.resize(index(place_.world_size));
  now->context.operation = operation;
  now->context.sequence = now->number;
  now->context.rank = place_.rank;
  now->context.world_size = place_.world_size;
  return now;
}

void mesh_session::expect_from(const std::shared_ptr<step>& now, int peer) {
  now->awaited.push_back(peer);
  asio::co_spawn(*io_, receive_part(now, peer), asio::detached);
}

asio::awaitable<void> mesh_session::receive_part(std::shared_ptr<step> now, int peer) {
  const auto line = met_.peers[index(peer)];
  try {
    frame part = co_await line->receive(max_message_bytes + step_prefix_bytes);
    const auto said = decode_step(part.body);
    if (part.kind == frame_kind::farewell) {
      now->fail(errc::peer_lost, "the peer ended its session", peer);
    } else if (part.kind != now->expected || !said || said->step != now->number) {
      now->fail(errc::mismatch, "the peer is at another step of the session", peer);
    } else {
      part.body.erase(part.body.begin(), part.body.begin() + step_prefix_bytes);
      now->parts[index(peer)] = std::move(part.body);
      std::erase(now->awaited, peer);
    }
  } catch (const connection_lost& lost) {
    now->fail(
        lost.cause() == loss::malformed ? errc::mismatch : errc::peer_lost, describe(lost), peer);
  } catch (const std::exception& failure) {
    now->fail(errc::internal, failure.what(), peer);
  }
}

void mesh_session::finish_step(const std::shared_ptr<step>& now, const deadline& until) {
  try {
    const auto is_over = [&] { return now->awaited.empty() && is_flushed(); };
    run_until(*io_, until, now->failure, is_over, cancel_);
    if (!is_over()) {
      now->context.deadline = until.span();
      now->context.peers = now->awaited;
      throw error{errc::timed_out,
                  now->awaited.empty() ? "a peer did not take what was sent"
                                       : fmt::format("nothing came from rank{} {}",
                                                     now->awaited.size() == 1 ? "" : "s",
                                                     fmt::join(now->awaited, ", ")),
                  now->context};
    }
  } catch (...) {
    // A frame may be half read: nothing can follow, and the others had better know at once.
    broken_ = std::current_exception();
    close_all();
    throw;
  }
}

bool mesh_session::is_flushed() const {
  return std::ranges::all_of(met_.peers,
                             [](const auto& line) { return !line || line->is_flushed(); });
}

std::vector<bytes> mesh_session::all_gather(std::span<const std::byte> mine,
                                            const deadline& until) {
  check_size(mine);
  const auto now = begin_step("all_gather", frame_kind::gather);
  const bytes body = encode(step_message{.step = now->number, .payload = mine});
  for (int peer = 0; peer < place_.world_size; ++peer) {
    if (peer != place_.rank) {
      met_.peers[index(peer)]->post(frame_kind::gather, body);
      expect_from(now, peer);
    }
  }
  finish_step(now, until);
  now->parts[index(place_.rank)] = copy_of(mine);
  std::vector<bytes> out;
  for (auto& part : now->parts) {
    out.push_back(std::move(part).value());
  }
  return out;
}

bytes mesh_session::broadcast(std::span<const std::byte> from_head, const deadline& until) {
  if (place_.rank != 0) {
    const auto now = begin_step("broadcast", frame_kind::broadcast);
    expect_from(now, 0);
    finish_step(now, until);
    met_.peers.front()->post(frame_kind::received,
                             encode(step_message{.step = now->number, .payload = {}}));
    return std::move(now->parts.front()).value();
  }
  check_size(from_head);
  const auto now = begin_step("broadcast", frame_kind::received);
  const bytes body = encode(step_message{.step = now->number, .payload = from_head});
  for (int peer = 1; peer < place_.world_size; ++peer) {
    met_.peers[index(peer)]->post(frame_kind::broadcast, body);
    expect_from(now, peer);
  }
  finish_step(now, until);
  return copy_of(from_head);
}

void mesh_session::start(session_listener& listener) {
  if (broken_) {
    std::rethrow_exception(broken_);
  }
  if (listener_ != nullptr || is_stopping_) {
    throw error{errc::invalid_usage, "the session was started or stopped before"};
  }
  listener_ = &listener;
  for (int peer = 0; peer < place_.world_size; ++peer) {
    if (peer != place_.rank) {
      asio::co_spawn(*io_, listen_to(peer), asio::detached);
    }
  }
  io_->restart();
  open_door();
  work_.emplace(io_->get_executor());
  thread_ = std::thread{[this] { run_thread(); }};
}

void mesh_session::open_door() {
  door_ = std::make_shared<doorkeeper>(
      *io_,
      met_.port->serve(*io_),
      keys_,
      fmt::format("rank {} is in generation {}, of {} ranks, and not meeting anybody",
                  place_.rank,
                  met_.generation,
                  place_.world_size));
  door_->start();
}

std::shared_ptr<const held_port> mesh_session::take_port() noexcept {
  if (door_) {
    asio::post(*io_, [door = door_] { door->stop(); });
  }
  return std::move(met_.port);
}

void mesh_session::run_thread() noexcept {
  try {
    io_->run();
  } catch (const std::exception& failure) {
    log_.report(failure, "rendezvous session");
    close_all();
  }
}

asio::awaitable<void> mesh_session::listen_to(int peer) {
  const auto line = met_.peers[index(peer)];
  std::string reason;
  try {
    while (reason.empty()) {
      const frame received = co_await line->receive(max_message_bytes);
      if (is_stopping_) {
        co_return;
      }
      if (received.kind == frame_kind::message) {
        listener_->on_message(peer, received.body);
      } else {
        reason = received.kind == frame_kind::farewell ? "the peer ended its session"
                                                       : "the peer broke the protocol";
      }
    }
  } catch (const connection_lost& lost) {
    reason = lost.what();
  } catch (const std::exception& failure) {
    reason = failure.what();
  }
  line->close();
  report_closed(peer, reason);
}

void mesh_session::report_closed(int peer, const std::string& reason) noexcept {
  if (!is_stopping_) {
    listener_->on_closed(peer, reason);
  }
}

void mesh_session::send(int peer, std::span<const std::byte> message) noexcept {
  try {
    check_size(message);
    if (peer < 0 || peer >= place_.world_size || peer == place_.rank) {
      throw error{errc::invalid_argument, fmt::format("there is no peer {}", peer)};
    }
    if (is_stopping_) {
      return;
    }
    asio::post(*io_, [line = met_.peers[index(peer)], body = copy_of(message)] {
      line->post(frame_kind::message, body);
    });
  } catch (const std::exception& failure) {
    log_.report(failure, "rendezvous session: a message was not sent");
  }
}

void mesh_session::close_all() noexcept {
  for (const auto& line : met_.peers) {
    if (line) {
      line->close();
    }
  }
  if (door_) {
    door_->stop();
  }
}

void mesh_session::stop() noexcept {
  try {
    if (!is_stopping_.exchange(true)) {
      asio::co_spawn(*io_, wind_down(), asio::detached);
      if (listener_ == nullptr) {
        io_->restart();
        io_->run();
      }
    }
    const std::scoped_lock lock{stop_mutex_};
    if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) {
      thread_.join();  // on the session's own thread it is left to the destructor
    }
  } catch (const std::exception& failure) {
    log_.report(failure, "rendezvous session: stop");
  }
}

/// Says goodbye, and gives what was sent before a moment to leave.
asio::awaitable<void> mesh_session::wind_down() {
  for (const auto& line : met_.peers) {
    if (line) {
      line->post(frame_kind::farewell);
    }
  }
  const deadline until = deadline::after(farewell_limit);
  while (!is_flushed() && !until.has_passed()) {
    co_await pause_for(farewell_pause);
  }
  close_all();
  io_->stop();
}

std::vector<bytes> solo_session::all_gather(std::span<const std::byte> mine,
                                            const deadline& /*until*/) {
  return {copy_of(mine)};
}

bytes solo_session::broadcast(std::span<const std::byte> from_head, const deadline& /*until*/) {
  return copy_of(from_head);
}

}  // namespace spark_comm::rendezvous::detail
