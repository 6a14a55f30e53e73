// SPDX-License-Identifier: AGPL-3.0-only
// The pure parts: which devices are visible, how a wait proceeds, how ranges are handed out.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <host/arena.hpp>
#include <host/backoff.hpp>
#include <host/visible_devices.hpp>
#include <host/wake_signal.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace spark_comm::host {

namespace {

using std::chrono::microseconds;

std::vector<device_uuid> four_devices() {
  std::vector<device_uuid> ids;
  for (int physical = 0; physical < 4; ++physical) {
    ids.push_back(make_uuid("boot", physical));
  }
  return ids;
}

TEST(visible_devices, counts_are_whole_numbers_from_1_to_64) {
  const struct {
    const char* text;
    std::optional<int> count;
  } table[] = {{nullptr, 8},
               {"1", 1},
               {"64", 64},
               {" 2 ", 2},
               {"0", {}},
               {"65", {}},
               {"-1", {}},
               {"", {}},
               {"two", {}},
               {"2x", {}},
               {"99999999999", {}}};

  for (const auto& [text, count] : table) {
    EXPECT_EQ(parse_device_count(text), count) << (text == nullptr ? "unset" : text);
  }
}

TEST(visible_devices, lists_follow_the_rules_of_cuda) {
  const std::string third = uuid_text(four_devices()[2]);

  const struct {
    std::string text;
    std::vector<int> devices;
  } table[] = {{"0,1", {0, 1}},
               {"3,1", {3, 1}},
               {" 2 , 0 ", {2, 0}},
               {"", {}},
               {"-1", {}},
               {"0,-1,1", {0}},
               {"0,4,1", {0}},
               {"0,junk,1", {0}},
               {"1,0,1", {}},
               {"0,", {0}},
               {third, {2}},
               {third.substr(0, 12) + ",0", {2, 0}},
               {third + "," + third, {}},
               {"2," + third, {}},
               {"GPU-", {}},
               {"GPU-ffffffff-0000-0000-0000-000000000000", {}}};

  for (const auto& [text, devices] : table) {
    EXPECT_EQ(visible_devices(text.c_str(), four_devices()), devices) << text;
  }
  EXPECT_EQ(visible_devices(nullptr, four_devices()), (std::vector<int>{0, 1, 2, 3}));
}

TEST(visible_devices, uuids_are_stable_and_distinct) {
  EXPECT_EQ(make_uuid("boot", 1), make_uuid("boot", 1));
  EXPECT_NE(make_uuid("boot", 1), make_uuid("boot", 2));
  EXPECT_NE(make_uuid("boot", 1), make_uuid("another", 1));
  const std::string text = uuid_text(make_uuid("boot", 1));
  EXPECT_EQ(text.size(), 40U);
  EXPECT_EQ(text.substr(0, 4), "GPU-");
}

TEST(backoff, spins_then_yields_then_naps) {
  const struct {
    microseconds waited;
    wait_step step;
  } table[] = {{microseconds{0}, {wait_kind::spin, {}}},
               {microseconds{19}, {wait_kind::spin, {}}},
               {microseconds{20}, {wait_kind::yield, {}}},
               {microseconds{299}, {wait_kind::yield, {}}},
               {microseconds{300}, {wait_kind::nap, microseconds{75}}},
               {microseconds{1000}, {wait_kind::nap, microseconds{250}}},
               {microseconds{2000}, {wait_kind::nap, microseconds{500}}},
               {microseconds{100000000}, {wait_kind::nap, microseconds{500}}}};

  for (const auto& [waited, step] : table) {
    EXPECT_EQ(step_after(waited), step) << waited.count();
  }
}

TEST(backoff, begins_anew_after_progress) {
  const backoff::clock::time_point start{};
  backoff patience{start};
  EXPECT_EQ(patience.next(start + microseconds{400}).kind, wait_kind::nap);
  patience.reset(start + microseconds{400});
  EXPECT_EQ(patience.next(start + microseconds{410}).kind, wait_kind::spin);
}

TEST(wake_signal, a_notification_after_the_look_is_not_missed) {
  wake_signal signal;
  const std::uint32_t seen = signal.epoch();
  signal.notify();
  signal.wait(seen);  // returns at once
  EXPECT_NE(signal.epoch(), seen);
}

TEST(wake_signal, wakes_a_sleeper) {
  wake_signal signal;
  const std::uint32_t seen = signal.epoch();
  std::thread sleeper{[&] {
    while (signal.epoch() == seen) {
      signal.wait(seen);
    }
  }};
  signal.notify();
  sleeper.join();
  signal.wait(signal.epoch(), microseconds{1});  // times out
}

TEST(range_allocator, hands_out_and_merges) {
  constexpr std::size_t total = 64 * 1024;
  range_allocator ranges{total};
  const auto a = ranges.allocate(100, 256);
  const auto b = ranges.allocate(5000, 4096);
  const auto c = ranges.allocate(256, 256);
  EXPECT_EQ(a, 0U);
  EXPECT_EQ(b, 4096U);
  EXPECT_EQ(c, 256U);  // the gap before the aligned one
  EXPECT_EQ(ranges.allocate(total, 256), std::nullopt);
  EXPECT_FALSE(ranges.is_empty());
  ranges.release(*b, 5000);
  ranges.release(*a, 100);
  ranges.release(*c, 256);
  EXPECT_TRUE(ranges.is_empty());
  EXPECT_EQ(ranges.allocate(total, 4096), 0U);
  EXPECT_EQ(ranges.allocate(1, 256), std::nullopt);
}

TEST(range_allocator, stays_consistent_in_any_order) {
  constexpr std::size_t total = 1024 * 1024;
  range_allocator ranges{total};
  std::vector<std::pair<std::size_t, std::size_t>> taken;
  std::uint32_t state = 1;
  const auto next = [&state] { return state = state * 1664525U + 1013904223U; };
  for (int step = 0; step < 5000; ++step) {
    if (next() % 3 != 0) {
      const std::size_t bytes = 1 + (next() >> 16U) % 9000;
      if (const auto offset = ranges.allocate(bytes, bytes >= 4096 ? 4096 : 256)) {
        for (const auto& [other, length] : taken) {
          ASSERT_TRUE(*offset + bytes <= other || other + length <= *offset);
        }
        taken.emplace_back(*offset, bytes);
      }
    } else if (!taken.empty()) {
      const std::size_t pick = (next() >> 8U) % taken.size();
      ranges.release(taken[pick].first, taken[pick].second);
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(pick));
    }
  }
  for (const auto& [offset, bytes] : taken) {
    ranges.release(offset, bytes);
  }
  EXPECT_TRUE(ranges.is_empty());
}

TEST(arena, is_zeroed_shared_memory) {
  const std::unique_ptr<arena> memory = arena::create(10000);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->bytes(), 12288U);
  EXPECT_EQ(memory->base()[9999], std::byte{0});
  memory->base()[5000] = std::byte{7};
  memory->discard(0, 12288);
  EXPECT_EQ(memory->base()[5000], std::byte{0});
}

}  // namespace

}  // namespace spark_comm::host
