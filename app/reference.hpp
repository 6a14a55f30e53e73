// SPDX-License-Identifier: AGPL-3.0-only
// The data that ranks put in, and what has to come out: known beforehand, and computed without the
// library that is tested.
#pragma once

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace spark_comm::app {

/// What decides the data.
struct pattern {
  data_type dtype = data_type::float32;
  std::optional<reduce_op> op;  ///< Empty for operations that only move.
  int world_size = 1;
};

/// Inputs and expected results of one pattern.
///
/// Inputs of a reduction are small numbers of which every partial sum (or product), in any order,
/// is exact in the type; inputs that only move are arbitrary bits, NaNs included. Both repeat with
/// a prime period, so that a block in a wrong place shows, and filling and comparing run at the
/// speed of memory.
///
/// Numerics: everything is compared bit by bit, but for an average of floats over a world size that
/// is no power of two: NCCL multiplies each input by 1/W rounded to the type, which cannot be
/// exact. There |got - exact| <= (W + 2) u sum|x| / W + tiny, with u the type's unit roundoff: one
/// rounding for the reciprocal, one for each product, at most W for the sum and its rounding.
/// Source: nccl-tests, verifiable/verifiable.h (the idea).
class reference {
 public:
  /// Elements after which the data repeats.
  static constexpr std::size_t period = 1021;

  explicit reference(const pattern& what);

  /// Input elements `first`, `first` + 1, ... of `rank`; `out` holds whole elements.
  void fill_input(int rank, std::size_t first, std::span<std::byte> out) const;

  /// How many elements of `got` differ from the reduction's elements `first`, `first` + 1, ...
  [[nodiscard]] std::size_t count_wrong_reduction(std::size_t first,
                                                  std::span<const std::byte> got) const;

  /// How many elements of `got` differ from the elements `first`, `first` + 1, ... of `rank`.
  [[nodiscard]] std::size_t count_wrong_copy(int rank,
                                             std::size_t first,
                                             std::span<const std::byte> got) const;

  /// The largest allowed error of a reduction's element; 0 where it is exact.
  [[nodiscard]] double tolerance(std::size_t index) const noexcept;

  /// The exact reduction of element `index`.
  [[nodiscard]] double exact_reduction(std::size_t index) const noexcept;

 private:
  void make_reduction();
  [[nodiscard]] bool is_accepted(std::size_t index, const std::byte* got) const noexcept;

  pattern what_;
  std::size_t element_bytes_;
  std::vector<std::vector<std::byte>> inputs_;  // one period a rank
  std::vector<std::byte> reduction_;            // one period, rounded to the type
  std::vector<double> exact_;                   // one period
  std::vector<double> tolerance_;               // one period; empty where all is exact
};

}  // namespace spark_comm::app
