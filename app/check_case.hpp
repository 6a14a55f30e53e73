// SPDX-License-Identifier: AGPL-3.0-only
// The combinations that `check` tries, and the memory of one of them.
#pragma once

#include "operation.hpp"
#include "reference.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spark_comm::app {

/// One combination.
struct check_case {
  operation what = operation::all_reduce;
  data_type dtype = data_type::float32;
  std::optional<reduce_op> op;  ///< For operations that reduce.
  int root = 0;
  std::size_t count = 0;
  bool in_place = false;
  bool misaligned = false;  ///< Buffers begin one element after an aligned address.
};

/// "all_reduce int8 sum, 17 elements, in place".
[[nodiscard]] std::string to_text(const check_case& one);

/// Counts around the borders of vector widths and chunks, the empty one included.
inline constexpr std::size_t check_counts[] = {0, 1, 3, 17, 1023, 4097};

/// Reduce operations to try with an operation; one empty entry when it only moves.
[[nodiscard]] std::vector<std::optional<reduce_op>> check_ops(operation what);

/// Every combination of one operation, type and reduce operation.
/// Roots are all ranks of a small world, else the first, a middle one and the last.
[[nodiscard]] std::vector<check_case> check_cases(operation what,
                                                  data_type dtype,
                                                  std::optional<reduce_op> op,
                                                  int world_size);

/// A rank's buffers of one case, laid out in one block of bytes with guards before, between and
/// after, so that the whole travels in one copy and every stray byte shows.
class check_image {
 public:
  /// Bytes that the largest case needs.
  [[nodiscard]] static std::size_t largest_bytes(int world_size) noexcept;

  check_image(const check_case& one, const placement& where);

  /// Offsets of input and output in the block.
  [[nodiscard]] std::size_t input() const noexcept { return input_; }

  [[nodiscard]] std::size_t output() const noexcept { return output_; }

  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_; }

  /// The block before the operation.
  void fill(const reference& data, std::span<std::byte> block) const;

  /// What is wrong with the block after the operation, in words; empty when all is right.
  [[nodiscard]] std::string verdict(const reference& data, std::span<const std::byte> block) const;

  /// The output's bytes.
  [[nodiscard]] std::span<const std::byte> output_of(std::span<const std::byte> block) const;

 private:
  /// Bytes that must be as they were before.
  [[nodiscard]] bool is_untouched(const reference& data, std::span<const std::byte> block) const;

  check_case case_;
  placement where_;
  std::size_t element_bytes_;
  std::size_t input_bytes_;
  std::size_t output_bytes_;
  std::size_t input_ = 0;
  std::size_t output_ = 0;
  std::size_t size_ = 0;
};

}  // namespace spark_comm::app
