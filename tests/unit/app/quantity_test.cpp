// SPDX-License-Identifier: AGPL-3.0-only
// Sizes and durations: what is taken, what is refused, how they are written.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <quantity.hpp>
#include <string_view>
#include <utility>

namespace spark_comm::app {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

TEST(quantity, sizes_have_binary_units) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 11> table = {{
      {"0", 0},
      {"8", 8},
      {"8b", 8},
      {"4K", 4096},
      {"4k", 4096},
      {"4KiB", 4096},
      {"4KB", 4096},
      {"1M", 1048576},
      {"2G", 2147483648},
      {"1T", 1099511627776},
      {"18446744073709551615", 18446744073709551615U},
  }};
  for (const auto& [text, bytes] : table) {
    EXPECT_EQ(parse_size(text), bytes) << text;
  }
}

TEST(quantity, malformed_sizes_are_refused) {
  for (const std::string_view text : {"",
                                      "K",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.5M",
                                      "1X",
                                      "1KK",
                                      "0x10",
                                      "18446744073709551616",
                                      "18014398509481984K",
                                      "99999999999T"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(quantity, durations_have_units_and_a_bare_number_is_seconds) {
  EXPECT_EQ(parse_duration("30s"), 30s);
  EXPECT_EQ(parse_duration("30"), 30s);
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("20us"), 20us);
  EXPECT_EQ(parse_duration("2m"), 2min);
  EXPECT_EQ(parse_duration("1h"), 1h);
}

TEST(quantity, malformed_durations_are_refused) {
  for (const std::string_view text :
       {"", "s", "-1s", "1.5s", "1d", "1 s", "10000000000", "9223372036854775808ns"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(quantity, sizes_are_written_with_their_unit) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(64ULL << 20U), "64 MiB");
  EXPECT_EQ(size_text(2ULL << 30U), "2 GiB");
}

TEST(quantity, durations_are_written_with_their_unit) {
  EXPECT_EQ(duration_text(30s), "30 s");
  EXPECT_EQ(duration_text(1500ms), "1.5 s");
  EXPECT_EQ(duration_text(500ms), "500 ms");
  EXPECT_EQ(duration_text(20us), "20 us");
}

}  // namespace
}  // namespace spark_comm::app
