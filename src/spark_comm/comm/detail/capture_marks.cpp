// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/capture_marks.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/supervise/in_flight.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace spark_comm::detail {
namespace {

// The device writes the first two, the prober the third over the first: as long as it stays, it is
// the same run.
constexpr std::uint8_t runs = 1;
constexpr std::uint8_t has_ended = 2;
constexpr std::uint8_t was_seen = 3;

probe_result ask(void* context, std::uint64_t index) noexcept {
  // Relaxed: the byte stands for itself. The device's write comes before the exchange, which then
  // fails or is followed by it: it is never lost.
  const std::atomic_ref byte{static_cast<std::uint8_t*>(context)[index]};
  if (byte.load(std::memory_order_relaxed) == was_seen) {
    return {.state = probe_state::pending};
  }
  std::uint8_t expected = runs;
  byte.compare_exchange_strong(expected, was_seen, std::memory_order_relaxed);
  return {.state = probe_state::done};
}

}  // namespace

capture_marks::capture_marks(const cuda::device& where)
    : device_(where), bytes_(cuda::pinned_buffer::allocate(where, most)) {
  std::memset(bytes_.address(), 0, bytes_.size_bytes());
}

void capture_marks::write(std::size_t mark, std::uint8_t value, cuda::stream_ref s) const {
  auto* const device_bytes =
      std::bit_cast<std::byte*>(static_cast<std::uintptr_t>(bytes_.device_address()));
  cuda::fill_async(device_, device_bytes + mark, value, 1, s);
}

std::optional<std::size_t> capture_marks::begin(cuda::stream_ref s) {
  if (taken_ == most) {
    return std::nullopt;
  }
  write(taken_, runs, s);
  return taken_++;
}

void capture_marks::end(std::size_t mark, cuda::stream_ref s) const {
  write(mark, has_ended, s);
}

completion_probe capture_marks::probe(std::size_t mark) const noexcept {
  return {.poll = ask, .context = bytes_.address(), .token = mark};
}

}  // namespace spark_comm::detail
