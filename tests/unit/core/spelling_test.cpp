// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/spelling.hpp>

#include <gtest/gtest.h>

#include <string_view>

namespace spark_comm {
namespace {

TEST(spelling, counts_the_letters_to_change) {
  struct row {
    std::string_view left;
    std::string_view right;
    std::size_t distance;
  };

  constexpr row rows[] = {
      {"", "", 0},
      {"abc", "abc", 0},
      {"", "abc", 3},
      {"abc", "", 3},
      {"abc", "abd", 1},
      {"abc", "ab", 1},
      {"abc", "xabc", 1},
      {"abcd", "acbd", 1},
      {"ab", "ba", 1},
      {"kitten", "sitting", 3},
      {"IDX", "INDEX", 2},
  };
  for (const row& each : rows) {
    EXPECT_EQ(spelling_distance(each.left, each.right), each.distance)
        << each.left << " " << each.right;
    EXPECT_EQ(spelling_distance(each.right, each.left), each.distance)
        << each.right << " " << each.left;
  }
}

TEST(spelling, finds_the_nearest_word_within_the_limit) {
  constexpr std::string_view known[] = {"apple", "apply", "orange"};
  EXPECT_EQ(nearest_word("apple", known, 0), "apple");
  EXPECT_EQ(nearest_word("appl", known, 1), "apple");  // the first of equals
  EXPECT_EQ(nearest_word("orangutan", known, 3), std::nullopt);
  EXPECT_EQ(nearest_word("orangee", known, 1), "orange");
  EXPECT_EQ(nearest_word("aplpe", known, 1), "apple");
  EXPECT_EQ(nearest_word("", known, 4), std::nullopt);
  EXPECT_EQ(nearest_word("x", {}, 9), std::nullopt);
}

}  // namespace
}  // namespace spark_comm
