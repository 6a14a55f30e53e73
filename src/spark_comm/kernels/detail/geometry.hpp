// SPDX-License-Identifier: AGPL-3.0-only
// How launches are shaped. Pure functions: where ranks have to agree on a shape, it hangs only on
// what they know alike, never on one rank's pointers or device.
#pragma once

#include <spark_comm/kernels/peer_segment.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace spark_comm::kernels::detail {

/// Grid and block of a one-dimensional launch, and the kernel's variant.
struct launch_shape {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;
  std::uint8_t variant = 0;

  friend bool operator==(const launch_shape&, const launch_shape&) = default;
};

/// Widest of 16, 4 and `element_bytes` on which every address is aligned.
[[nodiscard]] std::size_t vector_bytes(std::span<const void* const> addresses,
                                       std::size_t element_bytes) noexcept;

/// Whether every address is a multiple of `bytes`; null counts as aligned.
[[nodiscard]] bool are_aligned(std::span<const void* const> addresses, std::size_t bytes) noexcept;

/// Adding: 256 threads, up to 8 blocks a multiprocessor; variant 0, 1, 2 for 16, 4, 2 bytes.
[[nodiscard]] launch_shape add_shape(std::size_t bytes,
                                     std::size_t vector,
                                     int multiprocessors) noexcept;

/// A row of the norm: the fewest whole warps that hold it at one chunk of 8 a thread up to 512
/// threads (variant 0), at two up to 1024 (variant 1), else 1024 threads that loop (variant 2).
/// The order of a row's sum hangs on it; `blocks` is 1.
[[nodiscard]] launch_shape norm_shape(std::size_t hidden) noexcept;

/// One-shot and two-shot: 512 threads of 16 bytes.
[[nodiscard]] launch_shape exchange_shape(std::size_t bytes) noexcept;

/// Low latency: 256 threads of 8 bytes.
[[nodiscard]] launch_shape low_latency_shape(std::size_t bytes) noexcept;

/// Bytes of staging that rows take: whole chunks of 8 elements a row.
[[nodiscard]] std::size_t staged_row_bytes(std::size_t hidden, std::size_t element_bytes) noexcept;

}  // namespace spark_comm::kernels::detail
