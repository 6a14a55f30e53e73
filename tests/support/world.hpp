// SPDX-License-Identifier: AGPL-3.0-only
// A world of rank processes that have joined one communicator on the host runtime.
// Needs SPARK_COMM_TEST_HOST_RUNTIME, the path of the host runtime.
#pragma once

#include "support/ranks.hpp"

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/rendezvous/world.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

namespace spark_comm::test_support {

/// Where ranks meet: the head leaves its address in memory that all ranks share. Made before the
/// ranks are forked; for one meeting.
class meeting_place {
 public:
  /// For the head's `join_options::on_listening`.
  [[nodiscard]] std::function<void(const std::string&)> publisher() const {
    return [this](const std::string& address) {
      const std::size_t length = std::min(address.size(), board_->text.size() - 1);
      std::copy_n(address.begin(), length, board_->text.begin());
      board_->is_set.store(true, std::memory_order_release);
    };
  }

  /// The place of `rank`; waits until the head listens.
  [[nodiscard]] world of(int rank, int size) const {
    if (rank == 0) {
      return {.address = "127.0.0.1:0", .rank = 0, .world_size = size};
    }
    wait_until([this] { return board_->is_set.load(std::memory_order_acquire); },
               "the head never listened");
    return {.address = board_->text.data(), .rank = rank, .world_size = size};
  }

  /// Waits until all ranks have called it: what one of them does then, dying included, meets no
  /// other that is still joining.
  void line_up(int size) const {
    ++board_->arrived;
    wait_until([&] { return board_->arrived >= size; }, "a rank never joined");
  }

 private:
  static void wait_until(const std::function<bool()>& is_so, const char* otherwise) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (!is_so()) {
      if (std::chrono::steady_clock::now() >= end) {
        throw std::runtime_error{otherwise};
      }
      std::this_thread::sleep_for(std::chrono::microseconds{200});
    }
  }

  struct board {
    std::atomic<int> arrived{0};
    std::atomic<bool> is_set{false};
    std::array<char, 96> text{};
  };

  shared_value<board> board_;
};

/// The host runtime of this build. Not before a fork: the child would have no workers.
[[nodiscard]] inline runtime host_runtime(diagnostics log = {}) {
  return runtime::load(
      runtime_kind::host,
      {.nccl_library = {}, .host_library = SPARK_COMM_TEST_HOST_RUNTIME, .log = std::move(log)});
}

/// Changes the options that ranks join with.
using option_changes = std::function<void(int rank, join_options& options)>;

/// Defaults of tests: independent of the environment, with limits that end a hung test early.
[[nodiscard]] inline join_options test_options(const meeting_place& place,
                                               int rank,
                                               const option_changes& change = {}) {
  join_options options{.name = "test", .supervise = {}};
  options.deadline = std::chrono::seconds{15};
  options.operation_deadline = std::chrono::seconds{15};
  if (change) {
    change(rank, options);
  }
  if (rank == 0) {
    options.on_listening = place.publisher();
  }
  return options;
}

/// Joins, and returns when every rank has.
[[nodiscard]] inline communicator join_at(const meeting_place& place,
                                          const runtime& loaded,
                                          int rank,
                                          int size,
                                          const option_changes& change = {}) {
  communicator comm =
      communicator::join(loaded, place.of(rank, size), test_options(place, rank, change));
  place.line_up(size);
  return comm;
}

/// Forks `size` ranks, has them join, and gives each its communicator; what became of them. A rank
/// closes it after the body, unless the body broke or ended it.
[[nodiscard]] inline rank_outcomes run_world(int size,
                                             const std::function<void(communicator&)>& body,
                                             const option_changes& change = {},
                                             std::chrono::milliseconds limit = default_rank_limit) {
  const meeting_place place;
  return run_rank_processes(
      size,
      [&](int rank) {
        communicator comm = join_at(place, host_runtime(), rank, size, change);
        body(comm);
        if (comm.state() == communicator_state::ready) {
          comm.close(std::chrono::seconds{10});
        }
      },
      limit);
}

/// The same for bodies that succeed on every rank.
inline void in_world(int size,
                     const std::function<void(communicator&)>& body,
                     const option_changes& change = {}) {
  expect_all_succeeded(run_world(size, body, change));
}

}  // namespace spark_comm::test_support
