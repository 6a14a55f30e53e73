// SPDX-License-Identifier: AGPL-3.0-only
#include "unit/supervise/temporary_directory.hpp"

#include <spark_comm/supervise/flight_record.hpp>
#include <spark_comm/supervise/signature_log.hpp>
#include <spark_comm/supervise/trace.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// A rank that writes a real record, with a clock that goes one microsecond an event.
class recorded_rank {
 public:
  recorded_rank(const std::string& folder, int rank, int world_size, const std::string& name = "tp")
      : record_(flight_record::create(
            {.name = name, .rank = rank, .world_size = world_size, .generation = 1}, folder, 64)),
        log_(world_size) {}

  /// Issues an operation and sees it end.
  void done(std::uint64_t count, operation_kind kind = operation_kind::all_reduce, int peer = -1) {
    const std::uint64_t index = issue(count, kind, peer);
    record_.started(index, tick());
    record_.completed(index, tick());
  }

  std::uint64_t issue(std::uint64_t count,
                      operation_kind kind = operation_kind::all_reduce,
                      int peer = -1) {
    operation_record record{
        .sequence = log_.last_sequence() + 1, .count_elements = count, .root_or_peer = peer};
    record.kind = kind;
    record.dtype = data_type::float32;
    record.stream = 0x55;
    const std::uint64_t signature = log_.append(record);
    return record_.submitted(record, tick(), signature);
  }

  void started(std::uint64_t index) { record_.started(index, tick()); }

  void failed(std::uint64_t index) {
    record_.failed(index, tick(), errc::device_failed, native_domain::cuda, 700);
  }

  void ended(flight_end how) { record_.ended(how); }

  [[nodiscard]] flight_log read() const { return read_flight_record(record_.path()); }

 private:
  time_point tick() { return now_ += 1us; }

  flight_record record_;
  signature_log log_;
  time_point now_ = steady_time().now();
};

class trace_of_two : public ::testing::Test {
 protected:
  [[nodiscard]] flight_trace merged() const {
    auto traces = merge_flight_records({one.read(), zero.read()});
    EXPECT_EQ(traces.size(), 1U);
    return std::move(traces.at(0));
  }

  temporary_directory folder;
  recorded_rank zero{folder.path(), 0, 2};
  recorded_rank one{folder.path(), 1, 2};
};

TEST_F(trace_of_two, has_nothing_to_say_when_all_went_well) {
  for (recorded_rank* rank : {&zero, &one}) {
    rank->done(1);
    rank->done(2);
    rank->ended(flight_end::closed);
  }
  const flight_trace trace = merged();
  EXPECT_EQ(trace.name, "tp");
  EXPECT_EQ(trace.generation, 1U);
  EXPECT_EQ(trace.logs[0].who.rank, 0);
  EXPECT_FALSE(trace.first.has_value());
  EXPECT_THAT(trace.findings, ElementsAre());
}

TEST_F(trace_of_two, names_the_first_divergence) {
  zero.done(1);
  one.done(1);
  zero.issue(409600);
  one.issue(409598);
  const flight_trace trace = merged();
  ASSERT_TRUE(trace.first.has_value());
  EXPECT_EQ(trace.first->rank, 0);
  EXPECT_EQ(trace.first->peer, 1);
  EXPECT_EQ(trace.first->found.ordinal, 2U);
  EXPECT_EQ(trace.findings.at(0),
            "ranks 0 and 1 part (count): all_reduce #2 (409600 x fp32, sum, nccl) on rank 0, "
            "all_reduce #2 (409598 x fp32, sum, nccl) on rank 1");
}

TEST_F(trace_of_two, names_who_skipped) {
  for (const std::uint64_t count : {1U, 2U, 3U, 4U}) {
    zero.issue(count);
    if (count != 2) {
      one.issue(count);
    }
  }
  EXPECT_THAT(merged().findings.at(0), HasSubstr("(one skipped by rank 1)"));
}

TEST_F(trace_of_two, names_who_is_behind_and_who_is_stuck) {
  zero.done(1);
  one.done(1);
  zero.started(zero.issue(2));
  zero.issue(3);
  const flight_trace trace = merged();
  EXPECT_FALSE(trace.first.has_value());
  EXPECT_THAT(trace.findings,
              Contains("rank 1 is behind: it issued 1 of 3 collectives, its last operation is "
                       "all_reduce #1 (1 x fp32, sum, nccl)"));
  EXPECT_THAT(trace.findings,
              Contains("rank 0: all_reduce #2 (2 x fp32, sum, nccl) was running "
                       "and never seen to end"));
  EXPECT_THAT(trace.findings, Contains(HasSubstr("has not said how it ended")));
}

TEST_F(trace_of_two, pairs_are_compared_with_each_other) {
  zero.done(8, operation_kind::send, 1);
  one.done(9, operation_kind::recv, 0);
  const flight_trace trace = merged();
  ASSERT_TRUE(trace.first.has_value());
  EXPECT_EQ(trace.first->found.kind, mismatch_kind::count);
}

TEST_F(trace_of_two, tells_failures_with_their_numbers) {
  zero.failed(zero.issue(4));
  EXPECT_THAT(merged().findings,
              Contains("rank 0: all_reduce #1 (4 x fp32, sum, nccl) failed "
                       "(device_failed, native 700)"));
}

TEST_F(trace_of_two, long_histories_are_compared_where_both_still_know) {
  for (std::uint64_t each = 0; each < 200; ++each) {
    zero.done(each);
    if (each < 170) {
      one.done(each);
    }
  }
  EXPECT_FALSE(merged().first.has_value());
}

TEST_F(trace_of_two, says_whose_record_is_missing_or_double) {
  zero.ended(flight_end::closed);
  const auto alone = merge_flight_records({zero.read()});
  EXPECT_THAT(alone.at(0).missing, ElementsAre(1));
  EXPECT_THAT(alone.at(0).findings, ElementsAre("no record of rank 1"));
  const auto twice = merge_flight_records({zero.read(), zero.read()});
  EXPECT_THAT(twice.at(0).findings, Contains(HasSubstr("this one is left out")));
}

TEST_F(trace_of_two, communicators_are_kept_apart) {
  const recorded_rank other{folder.path(), 0, 1, "ep"};
  const auto traces = merge_flight_records({zero.read(), other.read(), one.read()});
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0].name, "ep");
  EXPECT_EQ(traces[1].logs.size(), 2U);
}

TEST(trace, nothing_and_rubbish_can_be_merged) {
  EXPECT_TRUE(merge_flight_records({}).empty());
  flight_log rubbish;
  rubbish.path = "x";
  rubbish.problems = {"not a flight record"};
  const auto traces = merge_flight_records({rubbish});
  EXPECT_THAT(traces.at(0).findings, ElementsAre("x: not a flight record"));
  EXPECT_EQ(to_chrome_trace(traces[0]), "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n]}\n");
}

TEST_F(trace_of_two, damaged_records_never_crash_the_merge) {
  for (std::uint64_t each = 0; each < 40; ++each) {
    zero.done(each);
    one.done(each);
  }
  std::mt19937 random{5};
  for (int round = 0; round < 200; ++round) {
    flight_log damaged = one.read();
    for (int hit = 0; hit < 8; ++hit) {
      flight_entry& entry = damaged.entries[random() % damaged.entries.size()];
      entry.record.ordinal = random();
      entry.record.root_or_peer = static_cast<int>(random());
      entry.submitted_ns = static_cast<std::int64_t>(std::uint64_t{random()} << 32U);
      entry.record.kind = static_cast<operation_kind>(random() % 256);
    }
    for (const flight_trace& trace : merge_flight_records({zero.read(), damaged})) {
      EXPECT_FALSE(to_chrome_trace(trace).empty());
    }
  }
}

TEST_F(trace_of_two, exports_slices_for_queued_and_running) {
  zero.done(7);
  zero.issue(8);
  const std::string json = to_chrome_trace(merged());
  EXPECT_THAT(
      json,
      HasSubstr(
          R"("ph":"X","cat":"running","name":"all_reduce","pid":0,"tid":1,"ts":1.000,"dur":1.000)"));
  EXPECT_THAT(json, HasSubstr(R"("ph":"b","cat":"queued","name":"all_reduce","id":"0.0")"));
  EXPECT_THAT(json, HasSubstr(R"("cat":"queued or running","name":"all_reduce","id":"0.1")"));
  EXPECT_THAT(json, HasSubstr(R"("args":{"name":"stream 0x55"})"));
  EXPECT_THAT(json, HasSubstr(R"("args":{"sequence":1,"ordinal":1,"count":7,"dtype":"fp32",)"));
  EXPECT_EQ(std::ranges::count(json, '{'), std::ranges::count(json, '}'));
  EXPECT_THAT(json, Not(HasSubstr(",,")));
}

TEST(trace, wall_time_goes_on_from_the_records_own_base) {
  flight_log log;
  log.wall_base_ns = 5000;
  log.steady_base_ns = 100;
  EXPECT_EQ(wall_ns(log, 130), 5030);
  EXPECT_EQ(wall_ns(log, 90), 4990);
}

TEST(trace, json_strings_are_escaped) {
  struct row {
    std::string text;
    const char* json;
  };

  const row rows[] = {
      {"", R"("")"},
      {"plain", R"("plain")"},
      {R"(a"b\c)", R"("a\"b\\c")"},
      {std::string("\n\t\0\x1f", 4), R"("\u000a\u0009\u0000\u001f")"},
      {"käse €😀", "\"käse €😀\""},
      {"\x80", R"("\ufffd")"},
      {"\xc3", R"("\ufffd")"},
      {"\xc0\xaf", R"("\ufffd\ufffd")"},
      {"\xed\xa0\x80", R"("\ufffd\ufffd\ufffd")"},
      {"\xf4\x90\x80\x80", R"("\ufffd\ufffd\ufffd\ufffd")"},
      {"\xe0\x80\x80", R"("\ufffd\ufffd\ufffd")"},
      {"\xf0\x80\x80\x80", R"("\ufffd\ufffd\ufffd\ufffd")"},
      {"\x7f", "\"\x7f\""},
  };
  for (const row& each : rows) {
    EXPECT_EQ(json_string(each.text), each.json);
  }
}

}  // namespace
}  // namespace spark_comm
