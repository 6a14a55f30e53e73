// SPDX-License-Identifier: AGPL-3.0-only
// Sessions of one process, connected by queues. Messages move when the test says so, or at once.
#pragma once

#include <spark_comm/rendezvous/session.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm {

class fake_network;

class fake_session final : public rendezvous::session {
 public:
  fake_session(fake_network& network, int rank, int world_size)
      : network_(&network), rank_(rank), world_size_(world_size) {}

  [[nodiscard]] int rank() const noexcept override { return rank_; }

  [[nodiscard]] int world_size() const noexcept override { return world_size_; }

  [[nodiscard]] world place() const override {
    world mine;
    mine.rank = rank_;
    mine.world_size = world_size_;
    return mine;
  }

  [[nodiscard]] std::uint64_t generation() const noexcept override { return 1; }

  [[nodiscard]] std::vector<rendezvous::bytes> all_gather(std::span<const std::byte> /*mine*/,
                                                          const deadline& /*until*/) override {
    return {};
  }

  [[nodiscard]] rendezvous::bytes broadcast(std::span<const std::byte> /*from_head*/,
                                            const deadline& /*until*/) override {
    return {};
  }

  void start(rendezvous::session_listener& listener) override { listener_ = &listener; }

  void send(int peer, std::span<const std::byte> message) noexcept override;

  void stop() noexcept override { listener_ = nullptr; }

  [[nodiscard]] rendezvous::session_listener* listener() const noexcept { return listener_; }

 private:
  fake_network* network_;
  int rank_;
  int world_size_;
  std::atomic<rendezvous::session_listener*> listener_{nullptr};
};

/// Who owns the sessions and carries the messages. One thread delivers; any may send.
class fake_network {
 public:
  explicit fake_network(int world_size) {
    for (int rank = 0; rank < world_size; ++rank) {
      sessions_.push_back(std::make_unique<fake_session>(*this, rank, world_size));
    }
  }

  [[nodiscard]] fake_session& at(int rank) { return *sessions_[static_cast<std::size_t>(rank)]; }

  void send(int from, int to, rendezvous::bytes message) {
    const std::scoped_lock lock{mutex_};
    queue_.push_back({from, to, std::move(message)});
  }

  /// Delivers what is under way, replies included; gives the number of messages.
  std::size_t deliver() {
    std::size_t delivered = 0;
    while (true) {
      letter next;
      {
        const std::scoped_lock lock{mutex_};
        if (queue_.empty()) {
          return delivered;
        }
        next = std::move(queue_.front());
        queue_.pop_front();
      }
      ++delivered;
      if (auto* const listener = at(next.to).listener()) {
        listener->on_message(next.from, next.message);
      }
    }
  }

  /// Everything under way is lost.
  void drop() {
    const std::scoped_lock lock{mutex_};
    queue_.clear();
  }

  /// All others see the connection to `rank` end.
  void close(int rank, const std::string& reason) {
    for (const auto& session : sessions_) {
      if (session->rank() != rank && session->listener() != nullptr) {
        session->listener()->on_closed(rank, reason);
      }
    }
  }

 private:
  struct letter {
    int from = 0;
    int to = 0;
    rendezvous::bytes message;
  };

  std::vector<std::unique_ptr<fake_session>> sessions_;
  std::mutex mutex_;
  std::deque<letter> queue_;
};

inline void fake_session::send(int peer, std::span<const std::byte> message) noexcept {
  network_->send(rank_, peer, {message.begin(), message.end()});
}

}  // namespace spark_comm
