// SPDX-License-Identifier: AGPL-3.0-only
// Ranks as streams of one GPU: each has a segment, and their kernels run side by side. Sizes have
// to be small enough for the blocks of all ranks to be resident together.
#pragma once

#include "support/gpu.hpp"

#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/peer_segment.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

namespace spark_comm::test {

/// What the host and a rank's kernels share: pinned memory.
struct shared_words {
  kernels::exchange_status status;
  std::uint32_t abort_word;
};

class gpu_world {
 public:
  gpu_world(const gpu& on, kernels::segment_limits limits, duration wait_limit)
      : limits_(limits), wait_limit_(wait_limit) {
    for (int rank = 0; rank < limits.world; ++rank) {
      segments_.push_back(cuda::device_buffer::allocate(on.device, kernels::segment_bytes(limits)));
      words_.push_back(cuda::pinned_buffer::allocate(on.device, sizeof(shared_words)));
      new (words_.back().address()) shared_words{};
      streams_.push_back(on.device.create_stream());
      cuda::fill_async(
          on.device, segments_.back().address(), 0, segments_.back().size_bytes(), on.stream);
    }
    on.wait(on.stream);
  }

  [[nodiscard]] int size() const { return limits_.world; }

  [[nodiscard]] const cuda::stream& stream(int rank) const {
    return streams_[static_cast<std::size_t>(rank)];
  }

  [[nodiscard]] kernels::peer_segments segments_of(int rank) const {
    kernels::peer_segments segments;
    for (std::size_t r = 0; r < segments_.size(); ++r) {
      segments.addresses[r] = segments_[r].address();
    }
    const cuda::pinned_buffer& words = words_[static_cast<std::size_t>(rank)];
    const auto base = static_cast<std::uintptr_t>(words.device_address());
    segments.limits = limits_;
    segments.rank = rank;
    segments.status =
        reinterpret_cast<kernels::exchange_status*>(base + offsetof(shared_words, status));
    segments.abort_word =
        reinterpret_cast<const std::uint32_t*>(base + offsetof(shared_words, abort_word));
    segments.wait_limit = wait_limit_;
    return segments;
  }

  /// As the host sees them.
  [[nodiscard]] shared_words& words(int rank) const {
    return *words_[static_cast<std::size_t>(rank)].as<shared_words>();
  }

  [[nodiscard]] kernels::exchange_failure failure(int rank) const {
    return std::atomic_ref<kernels::exchange_failure>{words(rank).status.failure}.load(
        std::memory_order_acquire);
  }

 private:
  kernels::segment_limits limits_;
  duration wait_limit_;
  std::vector<cuda::device_buffer> segments_;
  std::vector<cuda::pinned_buffer> words_;
  std::vector<cuda::stream> streams_;
};

}  // namespace spark_comm::test
