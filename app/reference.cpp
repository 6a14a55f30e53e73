// SPDX-License-Identifier: AGPL-3.0-only
#include "reference.hpp"

#include "element.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace spark_comm::app {
namespace {

/// SplitMix64's finalizer: neighbouring seeds give unrelated numbers.
std::uint64_t mixed(std::uint64_t seed) noexcept {
  seed += 0x9e3779b97f4a7c15U;
  seed = (seed ^ (seed >> 30U)) * 0xbf58476d1ce4e5b9U;
  seed = (seed ^ (seed >> 27U)) * 0x94d049bb133111ebU;
  return seed ^ (seed >> 31U);
}

std::uint64_t hash_of(int rank, std::size_t index) noexcept {
  return mixed((static_cast<std::uint64_t>(rank) << 32U) + index);
}

/// An integer of magnitude at most `limit`, not negative when the type is unsigned.
double small_integer(std::uint64_t hash, double limit, data_type dtype) noexcept {
  const auto span = static_cast<std::uint64_t>(limit);
  if (is_signed(dtype)) {
    return static_cast<double>(hash % (2 * span + 1)) - limit;
  }
  return static_cast<double>(hash % (span + 1));
}

/// Every partial sum stays within the exact integers: each rank gets an equal share of them. Where
/// that is less than one, as many ranks as there are exact integers put in a one, the others zero.
double summand(const pattern& what, int rank, std::size_t index) noexcept {
  const double exact = std::min(precision_of(what.dtype).largest_exact_integer, 1e6);
  const double share = std::floor(exact / what.world_size);
  if (share >= 1) {
    return small_integer(hash_of(rank, index), std::min(share, 50.0), what.dtype);
  }
  const auto turn =
      (static_cast<std::size_t>(rank) + index) % static_cast<std::size_t>(what.world_size);
  return static_cast<double>(turn) < exact ? 1 : 0;
}

/// Powers of two, so that a product is exact in any order; at most three ranks carry one that is
/// not 1 for an element, which ranks changing from element to element, so that no type overflows.
double factor(const pattern& what, int rank, std::size_t index) noexcept {
  const auto turn =
      (static_cast<std::size_t>(rank) + index) % static_cast<std::size_t>(what.world_size);
  if (turn >= 3) {
    return 1;
  }
  const std::uint64_t hash = hash_of(rank, index);
  const double magnitude = is_integer(what.dtype) || hash % 2 == 0 ? 2 : 0.5;
  return is_signed(what.dtype) && (hash >> 8U) % 3 == 0 ? -magnitude : magnitude;
}

double input_value(const pattern& what, int rank, std::size_t index) noexcept {
  const double exact = precision_of(what.dtype).largest_exact_integer;
  switch (*what.op) {
    case reduce_op::sum:
    case reduce_op::avg:  return summand(what, rank, index);
    case reduce_op::prod: return factor(what, rank, index);
    case reduce_op::max:
    case reduce_op::min:
      return small_integer(hash_of(rank, index), std::min(exact, 100.0), what.dtype);
  }
  return 0;
}

double reduced(const pattern& what, std::size_t index) noexcept {
  double result = input_value(what, 0, index);
  for (int rank = 1; rank < what.world_size; ++rank) {
    const double value = input_value(what, rank, index);
    switch (*what.op) {
      case reduce_op::sum:
      case reduce_op::avg:  result += value; break;
      case reduce_op::prod: result *= value; break;
      case reduce_op::max:  result = std::max(result, value); break;
      case reduce_op::min:  result = std::min(result, value); break;
    }
  }
  if (*what.op == reduce_op::avg) {
    result /= what.world_size;
    return is_integer(what.dtype) ? std::trunc(result) : result;
  }
  return result;
}

double error_bound(const pattern& what, std::size_t index) noexcept {
  double magnitudes = 0;
  for (int rank = 0; rank < what.world_size; ++rank) {
    magnitudes += std::fabs(input_value(what, rank, index));
  }
  const precision type = precision_of(what.dtype);
  const double roundings = what.world_size + 2;
  const double growth = roundings * type.unit_roundoff / (1 - roundings * type.unit_roundoff);
  return growth * magnitudes / what.world_size + roundings * type.half_smallest;
}

bool is_inexact(const pattern& what) noexcept {
  return what.op == reduce_op::avg && !is_integer(what.dtype) &&
         !std::has_single_bit(static_cast<unsigned int>(what.world_size));
}

/// Calls `piece(phase, offset_bytes, bytes)` for the stretches of `total` bytes that lie within one
/// period, beginning at element `first`.
template <typename Piece>
void for_each_period(std::size_t first, std::size_t total, std::size_t element_bytes, Piece piece) {
  std::size_t phase = first % reference::period;
  for (std::size_t offset = 0; offset < total;) {
    const std::size_t bytes = std::min(total - offset, (reference::period - phase) * element_bytes);
    piece(phase, offset, bytes);
    offset += bytes;
    phase = 0;
  }
}

}  // namespace

reference::reference(const pattern& what) : what_(what), element_bytes_(size_of(what.dtype)) {
  for (int rank = 0; rank < what.world_size; ++rank) {
    std::vector<std::byte>& input = inputs_.emplace_back(period * element_bytes_);
    for (std::size_t index = 0; index < period; ++index) {
      std::byte* const element = input.data() + index * element_bytes_;
      if (what.op) {
        store_element(what.dtype, input_value(what, rank, index), element);
      } else {
        const std::uint64_t bits = hash_of(rank, index);
        std::memcpy(element, &bits, element_bytes_);
      }
    }
  }
  if (what.op) {
    make_reduction();
  }
}

void reference::make_reduction() {
  reduction_.resize(period * element_bytes_);
  for (std::size_t index = 0; index < period; ++index) {
    exact_.push_back(reduced(what_, index));
    store_element(what_.dtype, exact_.back(), reduction_.data() + index * element_bytes_);
    if (is_inexact(what_)) {
      tolerance_.push_back(error_bound(what_, index));
    }
  }
}

void reference::fill_input(int rank, std::size_t first, std::span<std::byte> out) const {
  const std::vector<std::byte>& input = inputs_.at(static_cast<std::size_t>(rank));
  for_each_period(first,
                  out.size(),
                  element_bytes_,
                  [&](std::size_t phase, std::size_t offset, std::size_t bytes) {
                    std::memcpy(out.data() + offset, input.data() + phase * element_bytes_, bytes);
                  });
}

std::size_t reference::count_wrong_reduction(std::size_t first,
                                             std::span<const std::byte> got) const {
  std::size_t wrong = 0;
  for_each_period(
      first,
      got.size(),
      element_bytes_,
      [&](std::size_t phase, std::size_t offset, std::size_t bytes) {
        if (std::memcmp(got.data() + offset, reduction_.data() + phase * element_bytes_, bytes) ==
            0) {
          return;
        }
        for (std::size_t element = 0; element < bytes / element_bytes_; ++element) {
          const std::byte* const value = got.data() + offset + element * element_bytes_;
          wrong += is_accepted(phase + element, value) ? 0U : 1U;
        }
      });
  return wrong;
}

std::size_t reference::count_wrong_copy(int rank,
                                        std::size_t first,
                                        std::span<const std::byte> got) const {
  const std::vector<std::byte>& input = inputs_.at(static_cast<std::size_t>(rank));
  std::size_t wrong = 0;
  for_each_period(
      first,
      got.size(),
      element_bytes_,
      [&](std::size_t phase, std::size_t offset, std::size_t bytes) {
        const std::byte* const expected = input.data() + phase * element_bytes_;
        if (std::memcmp(got.data() + offset, expected, bytes) == 0) {
          return;
        }
        for (std::size_t at = 0; at < bytes; at += element_bytes_) {
          wrong +=
              std::memcmp(got.data() + offset + at, expected + at, element_bytes_) == 0 ? 0U : 1U;
        }
      });
  return wrong;
}

bool reference::is_accepted(std::size_t index, const std::byte* got) const noexcept {
  if (tolerance_.empty()) {
    // A sum that is zero may be -0 in another order of addition: the same number.
    return load_element(what_.dtype, got) == exact_[index];
  }
  return std::fabs(load_element(what_.dtype, got) - exact_[index]) <= tolerance_[index];
}

double reference::tolerance(std::size_t index) const noexcept {
  return tolerance_.empty() ? 0 : tolerance_[index % period];
}

double reference::exact_reduction(std::size_t index) const noexcept {
  return exact_[index % period];
}

}  // namespace spark_comm::app
