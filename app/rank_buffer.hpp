// SPDX-License-Identifier: AGPL-3.0-only
// A rank's device memory with known data in it, written and compared in pieces through the host.
#pragma once

#include "operation.hpp"
#include "reference.hpp"

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace spark_comm::app {

/// Moves pieces between the host and a device.
class staging {
 public:
  /// Host bytes that are used at most.
  static constexpr std::size_t capacity = 4U << 20U;

  staging(const cuda::device& device, duration limit);

  /// Calls `fill(offset, piece)` for the pieces of `bytes` bytes and copies each to `to`.
  template <typename Fill>
  void write(void* to, std::size_t bytes, Fill fill) {
    for (std::size_t offset = 0; offset < bytes; offset += capacity) {
      const std::span<std::byte> piece = piece_at(offset, bytes);
      fill(offset, piece);
      copy(static_cast<std::byte*>(to) + offset, piece.data(), piece.size());
    }
  }

  /// Copies the pieces of `bytes` bytes from `from` and calls `look(offset, piece)` for each.
  template <typename Look>
  void read(const void* from, std::size_t bytes, Look look) {
    for (std::size_t offset = 0; offset < bytes; offset += capacity) {
      const std::span<std::byte> piece = piece_at(offset, bytes);
      copy(piece.data(), static_cast<const std::byte*>(from) + offset, piece.size());
      look(offset, std::span<const std::byte>{piece});
    }
  }

  void fill(void* to, std::uint8_t value, std::size_t bytes);

 private:
  [[nodiscard]] std::span<std::byte> piece_at(std::size_t offset, std::size_t bytes);
  void copy(void* to, const void* from, std::size_t bytes);
  void drain();

  cuda::device device_;
  cuda::stream stream_;
  duration limit_;
  std::vector<std::byte> host_;
};

/// How many elements of a rank's output are not what they have to be.
[[nodiscard]] std::size_t count_wrong(staging& through,
                                      const reference& data,
                                      std::span<const result_segment> expected,
                                      const std::byte* output,
                                      std::size_t element_bytes);

}  // namespace spark_comm::app
