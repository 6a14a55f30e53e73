// SPDX-License-Identifier: AGPL-3.0-only
// The reference: exact where it says so, bounded where it cannot be, and not fooled by wrong data.
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <element.hpp>
#include <numeric>
#include <optional>
#include <reference.hpp>
#include <string>
#include <vector>

namespace spark_comm::app {
namespace {

std::vector<std::byte> input_of(const reference& data, const pattern& what, int rank) {
  std::vector<std::byte> input(reference::period * size_of(what.dtype));
  data.fill_input(rank, 0, input);
  return input;
}

/// Rounds to the type, as hardware does after every step.
double rounded(data_type dtype, double value) {
  std::array<std::byte, 8> element{};
  store_element(dtype, value, element.data());
  return load_element(dtype, element.data());
}

double combined(reduce_op op, double a, double b) {
  switch (op) {
    case reduce_op::sum:
    case reduce_op::avg:  return a + b;
    case reduce_op::prod: return a * b;
    case reduce_op::max:  return std::max(a, b);
    case reduce_op::min:  return std::min(a, b);
  }
  return 0;
}

std::string named(const pattern& what) {
  return std::string{name_of(what.dtype)} + " " + std::string{name_of(*what.op)} + " world " +
         std::to_string(what.world_size);
}

/// The reduction in the order of `ranks`, rounded to the type after every step.
std::vector<std::byte> reduce_stepwise(const pattern& what,
                                       const reference& data,
                                       const std::vector<int>& ranks) {
  const std::size_t bytes = size_of(what.dtype);
  std::vector<std::byte> result = input_of(data, what, ranks.front());
  for (std::size_t next = 1; next < ranks.size(); ++next) {
    const std::vector<std::byte> input = input_of(data, what, ranks[next]);
    for (std::size_t at = 0; at < result.size(); at += bytes) {
      const double value = combined(
          *what.op, load_element(what.dtype, &result[at]), load_element(what.dtype, &input[at]));
      store_element(what.dtype, value, &result[at]);
    }
  }
  return result;
}

TEST(reference, reductions_are_exact_in_any_order) {
  for (const data_type dtype : all_data_types) {
    if (!can_reduce(dtype)) {
      continue;
    }
    for (const reduce_op op : {reduce_op::sum, reduce_op::prod, reduce_op::max, reduce_op::min}) {
      for (const int world : {1, 2, 3, 4, 8, 16}) {
        const pattern what{.dtype = dtype, .op = op, .world_size = world};
        const reference data{what};
        std::vector<int> ranks(static_cast<std::size_t>(world));
        std::iota(ranks.begin(), ranks.end(), 0);
        EXPECT_EQ(data.count_wrong_reduction(0, reduce_stepwise(what, data, ranks)), 0U)
            << named(what);
        std::reverse(ranks.begin(), ranks.end());
        EXPECT_EQ(data.count_wrong_reduction(0, reduce_stepwise(what, data, ranks)), 0U)
            << named(what) << " reversed";
      }
    }
  }
}

TEST(reference, every_rank_matters_to_a_sum) {
  const pattern what{.dtype = data_type::float32, .op = reduce_op::sum, .world_size = 4};
  const reference data{what};
  EXPECT_GT(data.count_wrong_reduction(0, reduce_stepwise(what, data, {0, 1, 2})), 900U);
}

TEST(reference, an_integer_average_is_cut_towards_zero) {
  const pattern what{.dtype = data_type::int32, .op = reduce_op::avg, .world_size = 2};
  const reference data{what};
  const std::vector<std::byte> first = input_of(data, what, 0);
  const std::vector<std::byte> second = input_of(data, what, 1);
  int negative_and_odd = 0;
  for (std::size_t index = 0; index < reference::period; ++index) {
    const int sum = static_cast<int>(load_element(data_type::int32, &first[index * 4])) +
                    static_cast<int>(load_element(data_type::int32, &second[index * 4]));
    EXPECT_EQ(data.exact_reduction(index), sum / 2);
    negative_and_odd += sum < 0 && sum % 2 != 0 ? 1 : 0;
  }
  EXPECT_GT(negative_and_odd, 100);
}

/// NCCL's way: every input times 1/W rounded to the type, rounded after every step.
std::vector<std::byte> average_by_reciprocal(const pattern& what, const reference& data) {
  const double reciprocal = rounded(what.dtype, 1.0 / what.world_size);
  std::vector<std::byte> result = input_of(data, what, 0);
  const std::size_t bytes = size_of(what.dtype);
  for (std::size_t at = 0; at < result.size(); at += bytes) {
    double sum = rounded(what.dtype, load_element(what.dtype, &result[at]) * reciprocal);
    for (int rank = 1; rank < what.world_size; ++rank) {
      const std::vector<std::byte> input = input_of(data, what, rank);
      const double term = rounded(what.dtype, load_element(what.dtype, &input[at]) * reciprocal);
      sum = rounded(what.dtype, sum + term);
    }
    store_element(what.dtype, sum, &result[at]);
  }
  return result;
}

TEST(reference, a_float_average_accepts_a_rounded_reciprocal) {
  for (const data_type dtype : all_data_types) {
    if (is_integer(dtype) || dtype == data_type::bytes) {
      continue;
    }
    for (const int world : {2, 3, 4, 5, 8}) {
      const pattern what{.dtype = dtype, .op = reduce_op::avg, .world_size = world};
      const reference data{what};
      EXPECT_EQ(data.count_wrong_reduction(0, average_by_reciprocal(what, data)), 0U)
          << named(what);
    }
  }
}

TEST(reference, a_float_average_over_a_power_of_two_is_exact) {
  const reference data{{.dtype = data_type::bfloat16, .op = reduce_op::avg, .world_size = 4}};
  EXPECT_EQ(data.tolerance(0), 0);
}

TEST(reference, a_bounded_average_still_refuses_a_wrong_one) {
  const pattern what{.dtype = data_type::float32, .op = reduce_op::avg, .world_size = 3};
  const reference data{what};
  // The sum, as if nobody had divided.
  EXPECT_GT(data.count_wrong_reduction(0, reduce_stepwise(what, data, {0, 1, 2})), 900U);
}

TEST(reference, one_wrong_element_is_counted) {
  const pattern what{.dtype = data_type::bfloat16, .op = reduce_op::sum, .world_size = 2};
  const reference data{what};
  std::vector<std::byte> result = reduce_stepwise(what, data, {0, 1});
  result[500] ^= std::byte{0x40};
  EXPECT_EQ(data.count_wrong_reduction(0, result), 1U);
}

TEST(reference, a_nan_is_wrong) {
  const pattern what{.dtype = data_type::float32, .op = reduce_op::sum, .world_size = 1};
  const reference data{what};
  std::vector<std::byte> result = input_of(data, what, 0);
  store_element(what.dtype, std::nan(""), result.data());
  EXPECT_EQ(data.count_wrong_reduction(0, result), 1U);
}

TEST(reference, copies_are_compared_by_their_bits_from_any_element_on) {
  for (const data_type dtype : all_data_types) {
    const pattern what{.dtype = dtype, .op = std::nullopt, .world_size = 3};
    const reference data{what};
    const std::size_t bytes = size_of(dtype);
    std::vector<std::byte> piece((3 * reference::period + 7) * bytes);
    data.fill_input(1, 12345, piece);
    EXPECT_EQ(data.count_wrong_copy(1, 12345, piece), 0U);
    EXPECT_EQ(data.count_wrong_copy(1, 12345 % reference::period, piece), 0U);
    EXPECT_GT(data.count_wrong_copy(2, 12345, piece), 1000U) << "another rank's data";
    EXPECT_GT(data.count_wrong_copy(1, 12346, piece), 1000U) << "shifted by one";
    piece.back() ^= std::byte{1};
    EXPECT_EQ(data.count_wrong_copy(1, 12345, piece), 1U);
  }
}

TEST(reference, pieces_continue_each_other) {
  const reference data{{.dtype = data_type::int32, .op = std::nullopt, .world_size = 1}};
  std::vector<std::byte> whole(4000 * 4);
  data.fill_input(0, 0, whole);
  std::vector<std::byte> tail(1000 * 4);
  data.fill_input(0, 3000, tail);
  EXPECT_EQ(std::memcmp(tail.data(), &whole[3000 * 4], tail.size()), 0);
}

TEST(element, every_type_keeps_small_integers) {
  for (const data_type dtype : all_data_types) {
    for (const double value : {0.0, 1.0, 2.0, 7.0, 8.0}) {
      EXPECT_EQ(rounded(dtype, value), value) << name_of(dtype);
    }
    if (is_signed(dtype)) {
      EXPECT_EQ(rounded(dtype, -6), -6) << name_of(dtype);
    }
  }
}

TEST(element, integers_are_exact_up_to_the_stated_one) {
  for (const data_type dtype : all_data_types) {
    const double largest = precision_of(dtype).largest_exact_integer;
    EXPECT_EQ(rounded(dtype, largest), largest) << name_of(dtype);
    EXPECT_EQ(rounded(dtype, largest - 1), largest - 1) << name_of(dtype);
  }
}

}  // namespace
}  // namespace spark_comm::app
