// SPDX-License-Identifier: AGPL-3.0-only
// What `check` tries, and that it sees what it has to see.
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <check_case.hpp>
#include <check_result.hpp>
#include <cstddef>
#include <operation.hpp>
#include <rank_report.hpp>
#include <reference.hpp>
#include <span>
#include <string>
#include <vector>

namespace spark_comm::app {
namespace {

using testing::HasSubstr;

/// Does the operation on one rank's block without any library.
void imitate(const check_case& one,
             const placement& where,
             const check_image& image,
             const reference& data,
             std::vector<std::byte>& block) {
  std::size_t at = image.output();
  const std::size_t element = size_of(one.dtype);
  for (const result_segment& segment : expected_result(one.what, where, one.count)) {
    std::vector<std::byte> piece(segment.count * element);
    if (segment.source) {
      data.fill_input(*segment.source, segment.first, piece);
    } else {
      // World 1: the reduction is the input itself.
      data.fill_input(0, segment.first, piece);
    }
    std::copy(piece.begin(), piece.end(), block.begin() + static_cast<std::ptrdiff_t>(at));
    at += piece.size();
  }
}

TEST(check_case, right_results_pass_in_every_combination) {
  for (const operation what : all_operations) {
    const int world = traits_of(what).reduces ? 1 : 3;
    for (const data_type dtype : all_data_types) {
      for (const auto op : check_ops(what)) {
        const reference data{{.dtype = dtype, .op = op, .world_size = world}};
        for (const check_case& one : check_cases(what, dtype, op, world)) {
          const placement where{.rank = world - 1, .world_size = world, .root = one.root};
          const check_image image{one, where};
          ASSERT_LE(image.size_bytes(), check_image::largest_bytes(world));
          std::vector<std::byte> block(image.size_bytes());
          image.fill(data, block);
          imitate(one, where, image, data, block);
          EXPECT_EQ(image.verdict(data, block), "") << to_text(one);
        }
      }
    }
  }
}

struct prepared {
  check_case one{.what = operation::broadcast,
                 .dtype = data_type::bfloat16,
                 .op = std::nullopt,
                 .root = 0,
                 .count = 17,
                 .in_place = false,
                 .misaligned = true};
  placement where{.rank = 1, .world_size = 2, .root = 0};
  reference data{{.dtype = data_type::bfloat16, .op = std::nullopt, .world_size = 2}};
  check_image image{one, where};
  std::vector<std::byte> block = std::vector<std::byte>(image.size_bytes());

  prepared() { image.fill(data, block); }
};

TEST(check_case, an_operation_that_did_nothing_is_seen) {
  const prepared made;
  EXPECT_EQ(made.image.verdict(made.data, made.block), "17 of 17 elements wrong");
}

TEST(check_case, every_stray_byte_is_seen) {
  prepared made;
  imitate(made.one, made.where, made.image, made.data, made.block);
  ASSERT_EQ(made.image.verdict(made.data, made.block), "");
  for (std::size_t at = 0; at < made.block.size(); ++at) {
    made.block[at] ^= std::byte{0x10};
    EXPECT_NE(made.image.verdict(made.data, made.block), "") << "byte " << at;
    made.block[at] ^= std::byte{0x10};
  }
}

TEST(check_case, cases_cover_roots_sizes_and_placements) {
  const auto cases = check_cases(operation::reduce, data_type::int8, reduce_op::sum, 3);
  EXPECT_EQ(cases.size(), 3U * 6 * 2);
  const auto many = check_cases(operation::broadcast, data_type::int8, std::nullopt, 9);
  EXPECT_EQ(many.size(), 3U * 6 * 2);
  EXPECT_EQ(many.back().root, 8);
  EXPECT_EQ(check_cases(operation::send_recv, data_type::int8, std::nullopt, 2).size(), 6U);
  EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [](auto& one) { return one.misaligned; }));
  EXPECT_EQ(to_text(cases[3]), "reduce int8 sum, root 0, 1 elements, in place");
}

TEST(check_result, a_combination_that_fails_on_one_rank_fails) {
  const checked_report good{.operation = "reduce",
                            .passed = 10,
                            .failed = 0,
                            .not_supported = {{"fp8: no", 4}},
                            .failures = {},
                            .digest = 1};
  checked_report bad = good;
  bad.passed = 9;
  bad.failed = 1;
  bad.failures = {"reduce int8: 1 of 17 elements wrong on rank 1"};
  const operation_verdict verdict = combine({good, bad});
  EXPECT_FALSE(verdict.is_right());
  EXPECT_EQ(to_text(verdict),
            "reduce              9 passed, 1 failed, 4 not supported (fp8: no)\n"
            "  wrong: reduce int8: 1 of 17 elements wrong on rank 1\n");
  EXPECT_TRUE(combine({good, good}).is_right());
}

TEST(check_result, an_operation_waits_for_all_ranks) {
  check_collector results{2};
  const checked_report report{.operation = "reduce",
                              .passed = 1,
                              .failed = 0,
                              .not_supported = {},
                              .failures = {},
                              .digest = 0};
  EXPECT_FALSE(results.add(report));
  EXPECT_TRUE(results.add(report));
  EXPECT_EQ(results.complete(), 1U);
  EXPECT_TRUE(results.is_right());
}

}  // namespace
}  // namespace spark_comm::app
