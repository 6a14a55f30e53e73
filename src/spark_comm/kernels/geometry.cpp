// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/kernels/detail/geometry.hpp>
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/peer_segment.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spark_comm::kernels::detail {
namespace {

constexpr std::size_t warp = 32;
constexpr std::size_t chunk = chunk_elements;

constexpr std::size_t divide_up(std::size_t value, std::size_t by) noexcept {
  return value / by + (value % by != 0 ? 1 : 0);
}

launch_shape shape_of(std::size_t work, std::size_t threads, std::size_t most_blocks) noexcept {
  const std::size_t blocks = std::clamp<std::size_t>(divide_up(work, threads), 1, most_blocks);
  return {.blocks = static_cast<std::uint32_t>(blocks),
          .threads = static_cast<std::uint32_t>(threads)};
}

}  // namespace

bool are_aligned(std::span<const void* const> addresses, std::size_t bytes) noexcept {
  return std::ranges::all_of(addresses, [bytes](const void* address) {
    return std::bit_cast<std::uintptr_t>(address) % bytes == 0;
  });
}

std::size_t vector_bytes(std::span<const void* const> addresses,
                         std::size_t element_bytes) noexcept {
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{4}}) {
    if (bytes >= element_bytes && are_aligned(addresses, bytes)) {
      return bytes;
    }
  }
  return element_bytes;
}

launch_shape add_shape(std::size_t bytes, std::size_t vector, int multiprocessors) noexcept {
  const auto most = static_cast<std::size_t>(std::max(multiprocessors, 1)) * 8;
  launch_shape shape = shape_of(divide_up(bytes, vector), 256, most);
  shape.variant = vector == 16 ? 0 : (vector == 4 ? 1 : 2);
  return shape;
}

launch_shape norm_shape(std::size_t hidden) noexcept {
  const std::size_t chunks = divide_up(hidden, chunk);
  const auto whole_warps = [](std::size_t threads) {
    return static_cast<std::uint32_t>(divide_up(threads, warp) * warp);
  };
  if (chunks <= 512) {
    return {.threads = whole_warps(chunks), .variant = 0};
  }
  if (chunks <= 2048) {
    return {.threads = whole_warps(divide_up(chunks, 2)), .variant = 1};
  }
  return {.threads = 1024, .variant = 2};
}

launch_shape exchange_shape(std::size_t bytes) noexcept {
  return shape_of(divide_up(bytes, 16), 512, max_exchange_blocks);
}

launch_shape low_latency_shape(std::size_t bytes) noexcept {
  return shape_of(lines_of(bytes), 256, max_exchange_blocks);
}

std::size_t staged_row_bytes(std::size_t hidden, std::size_t element_bytes) noexcept {
  return divide_up(hidden, chunk) * chunk * element_bytes;
}

}  // namespace spark_comm::kernels::detail
