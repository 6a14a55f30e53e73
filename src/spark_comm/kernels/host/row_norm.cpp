// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/host/row_norm.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spark_comm::kernels::host {
namespace {

// Halves until one value is left; the length is a power of two.
float add_by_halving(std::span<float> values) noexcept {
  for (std::size_t half = values.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) {
      values[i] += values[i + half];
    }
  }
  return values[0];
}

}  // namespace

float combine_slots(std::span<float> slots) noexcept {
  constexpr std::size_t warp_lanes = 32;
  constexpr std::size_t warp_slots = warp_lanes * detail::chunk_elements;
  std::array<float, warp_lanes> warps{};
  for (std::size_t w = 0; w < slots.size() / warp_slots; ++w) {
    std::array<float, warp_lanes> lanes{};
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
      lanes[lane] = add_by_halving(
          slots.subspan(w * warp_slots + lane * detail::chunk_elements, detail::chunk_elements));
    }
    warps[w] = add_by_halving(lanes);
  }
  return add_by_halving(warps);
}

float inverse_rms(float squares, std::uint64_t hidden, float epsilon) noexcept {
  const float mean = squares / static_cast<float>(hidden);
  return 1.0F / std::sqrt(mean + epsilon);
}

float fp8_scale(float largest) noexcept {
  const float ratio = largest / 448.0F;
  return ratio > 0.0F ? ratio : 1.0F;
}

}  // namespace spark_comm::kernels::host
