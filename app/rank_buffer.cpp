// SPDX-License-Identifier: AGPL-3.0-only
#include "rank_buffer.hpp"

#include "exit_code.hpp"
#include "operation.hpp"
#include "quantity.hpp"
#include "reference.hpp"

#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <span>

namespace spark_comm::app {

staging::staging(const cuda::device& device, duration limit)
    : device_(device), stream_(device.create_stream()), limit_(limit), host_(capacity) {}

std::span<std::byte> staging::piece_at(std::size_t offset, std::size_t bytes) {
  return std::span{host_}.first(std::min(capacity, bytes - offset));
}

void staging::copy(void* to, const void* from, std::size_t bytes) {
  cuda::copy_async(device_, to, from, bytes, stream_);
  drain();
}

void staging::fill(void* to, std::uint8_t value, std::size_t bytes) {
  cuda::fill_async(device_, to, value, bytes, stream_);
  drain();
}

void staging::drain() {
  if (stream_.wait(limit_) == wait_result::timed_out) {
    throw failure(exit_code::failed,
                  fmt::format("a copy was not over after {}", duration_text(limit_)));
  }
}

std::size_t count_wrong(staging& through,
                        const reference& data,
                        std::span<const result_segment> expected,
                        const std::byte* output,
                        std::size_t element_bytes) {
  std::size_t wrong = 0;
  for (const result_segment& segment : expected) {
    const std::size_t bytes = segment.count * element_bytes;
    through.read(output, bytes, [&](std::size_t offset, std::span<const std::byte> piece) {
      const std::size_t first = segment.first + offset / element_bytes;
      wrong += segment.source ? data.count_wrong_copy(*segment.source, first, piece)
                              : data.count_wrong_reduction(first, piece);
    });
    output += bytes;
  }
  return wrong;
}

}  // namespace spark_comm::app
