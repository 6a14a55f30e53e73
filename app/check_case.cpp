// SPDX-License-Identifier: AGPL-3.0-only
#include "check_case.hpp"

#include "operation.hpp"
#include "reference.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spark_comm::app {
namespace {

constexpr std::size_t guard_bytes = 256;
constexpr std::byte guard{0xa5};
constexpr std::byte poison{0xee};
/// Buffers begin at multiples of this, or one element after.
constexpr std::size_t alignment = 256;
constexpr std::size_t widest_element = 8;

std::size_t aligned(std::size_t offset) noexcept {
  return (offset + alignment - 1) / alignment * alignment;
}

std::vector<int> check_roots(operation what, int world_size) {
  if (!traits_of(what).has_root) {
    return {0};
  }
  std::vector<int> roots;
  if (world_size <= 4) {
    for (int root = 0; root < world_size; ++root) {
      roots.push_back(root);
    }
    return roots;
  }
  return {0, world_size / 2, world_size - 1};
}

}  // namespace

std::string to_text(const check_case& one) {
  const operation_traits& traits = traits_of(one.what);
  std::string text = fmt::format("{} {}", traits.name, name_of(one.dtype));
  if (one.op) {
    text += fmt::format(" {}", name_of(*one.op));
  }
  if (traits.has_root) {
    text += fmt::format(", root {}", one.root);
  }
  return text + fmt::format(", {} elements, {}{}",
                            one.count,
                            one.in_place ? "in place" : "out of place",
                            one.misaligned ? ", misaligned" : "");
}

std::vector<std::optional<reduce_op>> check_ops(operation what) {
  if (!traits_of(what).reduces) {
    return {std::nullopt};
  }
  return {std::begin(all_reduce_ops), std::end(all_reduce_ops)};
}

std::vector<check_case> check_cases(operation what,
                                    data_type dtype,
                                    std::optional<reduce_op> op,
                                    int world_size) {
  std::vector<check_case> cases;
  for (const int root : check_roots(what, world_size)) {
    for (const std::size_t count : check_counts) {
      for (const bool in_place : {false, true}) {
        if (in_place && !traits_of(what).has_in_place) {
          continue;
        }
        cases.push_back({.what = what,
                         .dtype = dtype,
                         .op = op,
                         .root = root,
                         .count = count,
                         .in_place = in_place,
                         .misaligned = cases.size() % 3 == 1});
      }
    }
  }
  return cases;
}

std::size_t check_image::largest_bytes(int world_size) noexcept {
  const std::size_t count = std::ranges::max(check_counts);
  const std::size_t buffer = (count * static_cast<std::size_t>(world_size) + 1) * widest_element;
  return 2 * aligned(buffer) + 4 * guard_bytes;
}

check_image::check_image(const check_case& one, const placement& where)
    : case_(one), where_(where), element_bytes_(size_of(one.dtype)) {
  const buffer_shape shape = shape_of(one.what, where.world_size, one.count);
  input_bytes_ = shape.input * element_bytes_;
  output_bytes_ = shape.output * element_bytes_;
  const std::size_t shift = one.misaligned ? element_bytes_ : 0;
  const std::size_t first = guard_bytes + shift;
  if (one.in_place) {
    const in_place_offsets offsets = in_place_of(one.what, where.rank, one.count);
    input_ = first + offsets.input * element_bytes_;
    output_ = first + offsets.output * element_bytes_;
    size_ = first + std::max(input_bytes_, output_bytes_) + guard_bytes;
  } else {
    input_ = first;
    output_ = aligned(first + input_bytes_ + guard_bytes) + shift;
    size_ = output_ + output_bytes_ + guard_bytes;
  }
}

void check_image::fill(const reference& data, std::span<std::byte> block) const {
  std::ranges::fill(block, guard);
  std::fill_n(block.begin() + static_cast<std::ptrdiff_t>(output_), output_bytes_, poison);
  data.fill_input(where_.rank, 0, block.subspan(input_, input_bytes_));
}

std::span<const std::byte> check_image::output_of(std::span<const std::byte> block) const {
  return block.subspan(output_, output_bytes_);
}

bool check_image::is_untouched(const reference& data, std::span<const std::byte> block) const {
  std::vector<std::byte> before(block.size());
  fill(data, before);
  // In place, what of the input lies outside the output may be used as scratch.
  const std::size_t from = case_.in_place ? std::min(input_, output_) : output_;
  const std::size_t to = case_.in_place ? std::max(input_ + input_bytes_, output_ + output_bytes_)
                                        : output_ + output_bytes_;
  return std::equal(
             block.begin(), block.begin() + static_cast<std::ptrdiff_t>(from), before.begin()) &&
         std::equal(block.begin() + static_cast<std::ptrdiff_t>(to),
                    block.end(),
                    before.begin() + static_cast<std::ptrdiff_t>(to));
}

std::string check_image::verdict(const reference& data, std::span<const std::byte> block) const {
  std::size_t wrong = 0;
  std::size_t at = output_;
  for (const result_segment& segment : expected_result(case_.what, where_, case_.count)) {
    const std::span<const std::byte> got = block.subspan(at, segment.count * element_bytes_);
    wrong += segment.source ? data.count_wrong_copy(*segment.source, segment.first, got)
                            : data.count_wrong_reduction(segment.first, got);
    at += got.size();
  }
  if (wrong > 0) {
    return fmt::format("{} of {} elements wrong", wrong, output_bytes_ / element_bytes_);
  }
  return is_untouched(data, block) ? "" : "bytes outside the result were changed";
}

}  // namespace spark_comm::app
