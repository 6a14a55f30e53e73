// SPDX-License-Identifier: AGPL-3.0-only
// Segments of several ranks in this process's memory, and a thread for each rank.
#pragma once

#include "support/inline_driver.hpp"

#include <spark_comm/core/time.hpp>
#include <spark_comm/kernels/module.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/peer_segment.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace spark_comm::kernels {

class segment_world {
 public:
  explicit segment_world(segment_limits limits, duration wait_limit = std::chrono::seconds{20})
      : limits_(limits), wait_limit_(wait_limit) {
    for (int rank = 0; rank < limits.world; ++rank) {
      ranks_.push_back(std::make_unique<rank_memory>(segment_bytes(limits)));
    }
  }

  [[nodiscard]] int size() const { return limits_.world; }

  [[nodiscard]] peer_segments segments_of(int rank) const {
    peer_segments segments;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      segments.addresses[r] = ranks_[r]->segment.get();
    }
    segments.limits = limits_;
    segments.rank = rank;
    segments.status = &memory(rank).status;
    segments.abort_word = &memory(rank).abort_word;
    segments.wait_limit = wait_limit_;
    return segments;
  }

  [[nodiscard]] exchange_status& status(int rank) const { return memory(rank).status; }

  [[nodiscard]] std::uint32_t& abort_word(int rank) const { return memory(rank).abort_word; }

  [[nodiscard]] segment_header& header(int rank) const {
    return *reinterpret_cast<segment_header*>(memory(rank).segment.get());
  }

  /// Runs `body(rank)` on a thread for each rank.
  void run(const std::function<void(int)>& body) const {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&body, rank] { body(rank); });
    }
  }

 private:
  struct aligned_delete {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{256}); }
  };

  struct rank_memory {
    explicit rank_memory(std::size_t bytes)
        : segment(new(std::align_val_t{256}) std::byte[bytes]{}) {}

    std::unique_ptr<std::byte[], aligned_delete> segment;
    exchange_status status{};
    std::uint32_t abort_word = 0;
  };

  [[nodiscard]] rank_memory& memory(int rank) const {
    return *ranks_[static_cast<std::size_t>(rank)];
  }

  segment_limits limits_;
  duration wait_limit_;
  std::vector<std::unique_ptr<rank_memory>> ranks_;
};

}  // namespace spark_comm::kernels
