// SPDX-License-Identifier: AGPL-3.0-only
// The twin of device/low_latency.cu.
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/kernels/detail/host_image.hpp>
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/host/elements.hpp>
#include <spark_comm/kernels/host/flags.hpp>
#include <spark_comm/kernels/host/kernels.hpp>
#include <spark_comm/kernels/peer_segment.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace spark_comm::kernels::host {
namespace {

// 8 bytes of data, and the flag that vouches for each half.
using line_words = std::array<std::uint32_t, 2>;

std::uint64_t& word_of(std::byte* line, std::size_t half) {
  return *(reinterpret_cast<std::uint64_t*>(line) + half);
}

void store_line(std::byte* to, line_words data, std::uint32_t flag) noexcept {
  for (std::size_t half = 0; half < data.size(); ++half) {
    const std::uint64_t word = std::uint64_t{flag} << 32U | data[half];
    // Relaxed: flag and data are one word.
    std::atomic_ref<std::uint64_t>{word_of(to, half)}.store(word, std::memory_order_relaxed);
  }
}

bool try_load_line(std::byte* from, std::uint32_t flag, line_words& data) noexcept {
  bool is_there = true;
  for (std::size_t half = 0; half < data.size(); ++half) {
    const std::uint64_t word =
        std::atomic_ref<std::uint64_t>{word_of(from, half)}.load(std::memory_order_relaxed);
    data[half] = static_cast<std::uint32_t>(word);
    is_there = is_there && static_cast<std::uint32_t>(word >> 32U) == flag;
  }
  return is_there;
}

template <typename T>
class lines {
 public:
  static constexpr std::size_t count = line_data_bytes / sizeof(T);

  lines(const detail::all_reduce_parameters& p, std::uint64_t round) : p_(p), round_(round) {}

  [[nodiscard]] std::size_t used() const { return (p_.count_elements + count - 1) / count; }

  void send(std::size_t line) const {
    line_words data{};
    if (line < used()) {
      std::memcpy(&data, static_cast<const T*>(p_.input) + line * count, valid(line) * sizeof(T));
    }
    for (int r = 0; r < p_.peers.limits.world; ++r) {
      if (r != p_.peers.rank) {
        store_line(address(r, p_.peers.rank, line), data, low_latency_flag(round_));
      }
    }
  }

  [[nodiscard]] bool reduce(std::size_t line) const {
    std::array<float, count> total{};
    for (int r = 0; r < p_.peers.limits.world; ++r) {
      std::array<T, count> part{};
      if (!load(r, line, part)) {
        return false;
      }
      for (std::size_t i = 0; i < count; ++i) {
        total[i] = r == 0 ? decode(part[i]) : total[i] + decode(part[i]);
      }
    }
    for (std::size_t i = 0; i < valid(line); ++i) {
      static_cast<T*>(p_.output)[line * count + i] = encode<T>(total[i]);
    }
    return true;
  }

 private:
  [[nodiscard]] std::size_t valid(std::size_t line) const {
    return std::min<std::size_t>(count, p_.count_elements - line * count);
  }

  [[nodiscard]] std::byte* address(int owner, int source, std::size_t line) const {
    return bytes_of(p_.peers.segments[owner]) +
           low_latency_offset(p_.peers.limits, round_, source) + line * line_bytes;
  }

  [[nodiscard]] bool load(int rank, std::size_t line, std::array<T, count>& part) const {
    if (rank == p_.peers.rank) {
      std::memcpy(
          part.data(), static_cast<const T*>(p_.input) + line * count, valid(line) * sizeof(T));
      return true;
    }
    line_words data{};
    std::byte* const from = address(p_.peers.rank, rank, line);
    const bool is_there = spin_until(p_.peers, {.peer = rank, .round = round_}, [&] {
      return try_load_line(from, low_latency_flag(round_), data);
    });
    std::memcpy(part.data(), &data, sizeof data);
    return is_there;
  }

  const detail::all_reduce_parameters& p_;
  std::uint64_t round_;
};

}  // namespace

template <typename T>
void low_latency(void** arguments, host_dimensions /*grid*/, host_dimensions /*block*/) {
  const auto& p = *static_cast<const detail::all_reduce_parameters*>(arguments[0]);
  segment_header& own = header_of(p.peers.segments[p.peers.rank]);
  const std::uint64_t round = begin_round(p.peers, own.low_latency_rounds);
  if (round == 0) {
    return;
  }
  const lines<T> message{p, round};
  const std::size_t used = message.used();
  const std::size_t sent =
      refreshes_lines(round) ? lines_of(p.peers.limits.low_latency_bytes) : used;
  for (std::size_t line = 0; line < sent; ++line) {
    message.send(line);
  }
  for (std::size_t line = 0; line < used; ++line) {
    if (!message.reduce(line)) {
      return;
    }
  }
  end_round(own.low_latency_rounds, round);
}

template void low_latency<float>(void**, host_dimensions, host_dimensions);
template void low_latency<float16>(void**, host_dimensions, host_dimensions);
template void low_latency<bfloat16>(void**, host_dimensions, host_dimensions);

}  // namespace spark_comm::kernels::host
