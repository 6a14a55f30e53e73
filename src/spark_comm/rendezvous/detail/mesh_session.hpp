// SPDX-License-Identifier: AGPL-3.0-only
// The session of a met world, with a connection to each peer.
#pragma once

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/detail/connection.hpp>
#include <spark_comm/rendezvous/detail/doorkeeper.hpp>
#include <spark_comm/rendezvous/detail/meeting.hpp>
#include <spark_comm/rendezvous/detail/trust.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <asio/awaitable.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace spark_comm::rendezvous::detail {

/// Before `start` the caller's thread runs the loop, inside the collective calls; after it, the
/// session's own thread does.
class mesh_session final : public session {
 public:
  mesh_session(std::unique_ptr<asio::io_context> io, met_world met, const meeting_plan& plan);
  mesh_session(const mesh_session&) = delete;
  mesh_session& operator=(const mesh_session&) = delete;
  mesh_session(mesh_session&&) = delete;
  mesh_session& operator=(mesh_session&&) = delete;
  ~mesh_session() override;

  [[nodiscard]] int rank() const noexcept override { return place_.rank; }

  [[nodiscard]] int world_size() const noexcept override { return place_.world_size; }

  [[nodiscard]] world place() const override { return place_; }

  [[nodiscard]] std::uint64_t generation() const noexcept override { return met_.generation; }

  [[nodiscard]] std::vector<std::string> listener_addresses() const override {
    return met_.listeners;
  }

  [[nodiscard]] std::shared_ptr<const held_port> take_port() noexcept override;

  [[nodiscard]] std::vector<bytes> all_gather(std::span<const std::byte> mine,
                                              const deadline& until) override;
  [[nodiscard]] bytes broadcast(std::span<const std::byte> from_head,
                                const deadline& until) override;
  void start(session_listener& listener) override;
  void send(int peer, std::span<const std::byte> message) noexcept override;
  void stop() noexcept override;

 private:
  struct step;

  [[nodiscard]] std::shared_ptr<step> begin_step(const char* operation, frame_kind expected);
  void expect_from(const std::shared_ptr<step>& now, int peer);
  asio::awaitable<void> receive_part(std::shared_ptr<step> now, int peer);
  void finish_step(const std::shared_ptr<step>& now, const deadline& until);
  [[nodiscard]] bool is_flushed() const;

  asio::awaitable<void> listen_to(int peer);
  void report_closed(int peer, const std::string& reason) noexcept;
  asio::awaitable<void> wind_down();
  void run_thread() noexcept;
  void close_all() noexcept;
  void open_door();

  std::unique_ptr<asio::io_context> io_;
  world place_;
  met_world met_;
  std::shared_ptr<trust> keys_;
  std::shared_ptr<doorkeeper> door_;  // from `start` until the port is taken or the session stops
  diagnostics log_;
  std::stop_token cancel_;
  std::uint64_t steps_ = 0;
  std::exception_ptr
      broken_;  // the first failure of a collective call; the session is of no more use
  session_listener* listener_ = nullptr;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::thread thread_;
  std::atomic<bool> is_stopping_{false};
  std::mutex stop_mutex_;
};

/// The session of a world of one: no socket, no thread.
class solo_session final : public session {
 public:
  solo_session(std::string address, std::uint64_t generation) noexcept
      : address_(std::move(address)), generation_(generation) {}

  [[nodiscard]] int rank() const noexcept override { return 0; }

  [[nodiscard]] int world_size() const noexcept override { return 1; }

  [[nodiscard]] world place() const override {
    return {.address = address_, .rank = 0, .world_size = 1};
  }

  [[nodiscard]] std::uint64_t generation() const noexcept override { return generation_; }

  [[nodiscard]] std::vector<bytes> all_gather(std::span<const std::byte> mine,
                                              const deadline& until) override;
  [[nodiscard]] bytes broadcast(std::span<const std::byte> from_head,
                                const deadline& until) override;

  void start(session_listener& /*listener*/) override {}

  void send(int /*peer*/, std::span<const std::byte> /*message*/) noexcept override {}

  void stop() noexcept override {}

 private:
  std::string address_;
  std::uint64_t generation_;
};

}  // namespace spark_comm::rendezvous::detail
