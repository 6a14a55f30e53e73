// SPDX-License-Identifier: AGPL-3.0-only
// Sums over ranks in host equivalents, a piece at a time so that the sums stay in the first cache.
#pragma once

#include <spark_comm/kernels/host/elements.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace spark_comm::kernels::host {

/// `sums` = the sum over ranks of `count` elements, in rank order, in fp32.
/// `from(r)` is where rank r's elements start.
template <typename T, typename From>
void sum_over_ranks(std::span<float> sums, int ranks, From from) {
  const T* const first = from(0);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = decode(first[i]);
  }
  for (int r = 1; r < ranks; ++r) {
    const T* const next = from(r);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += decode(next[i]);
    }
  }
}

inline constexpr std::size_t piece_elements = 1024;

/// Rounds the sums of `count` elements into `to`, which may be one of the inputs.
/// `from(r, at)` is where rank r's element `at` is.
template <typename T, typename From>
void round_sums(T* to, std::size_t count, int ranks, From from) {
  float sums[piece_elements];
  for (std::size_t at = 0; at < count; at += piece_elements) {
    const std::size_t length = std::min(piece_elements, count - at);
    sum_over_ranks<T>({sums, length}, ranks, [&](int r) { return from(r, at); });
    for (std::size_t i = 0; i < length; ++i) {
      to[at + i] = encode<T>(sums[i]);
    }
  }
}

}  // namespace spark_comm::kernels::host
