// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"
#include "support/scripted_tables.hpp"

#include <spark_comm/comm/detail/completion_events.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/supervise/in_flight.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace spark_comm::detail {
namespace {

namespace results = cuda::abi::results;

class marks : public ::testing::Test {
 protected:
  void SetUp() override {
    events_.fill();
    tables_.script.on("cuEventQuery",
                      std::function<int(cuda::abi::event)>{[this](auto) { return answer_; }});
  }

  std::uint64_t mark(cuda::stream_ref s) {
    const std::optional<std::uint64_t> made = events_.mark(s);
    EXPECT_TRUE(made);
    return made.value_or(0);
  }

  std::uint64_t mark() { return mark(stream_); }

  /// What a probe says when the driver says `answer`.
  probe_result ask(std::uint64_t mark, int answer) {
    answer_ = answer;
    const completion_probe probe = events_.probe(mark);
    return probe.poll(probe.context, probe.token);
  }

  /// What a probe knows without asking the driver.
  bool is_known_reached(std::uint64_t mark) {
    const auto before = tables_.script.count("cuEventQuery");
    const probe_state state = ask(mark, results::not_ready).state;
    return state == probe_state::done && tables_.script.count("cuEventQuery") == before;
  }

  testing::scripted_tables tables_;
  cuda::device device_ = cuda::device::open(tables_.cuda.driver(), 0);
  cuda::stream stream_ = device_.create_stream();
  cuda::stream other_ = device_.create_stream();
  completion_events events_{device_, 3};
  int answer_ = results::success;
};

TEST_F(marks, tell_pending_done_and_failed_apart) {
  const std::uint64_t made = mark();
  EXPECT_EQ(ask(made, results::not_ready).state, probe_state::pending);
  const probe_result failed = ask(made, 700);
  EXPECT_EQ(failed.state, probe_state::failed);
  EXPECT_EQ(failed.code, errc::device_failed);
  EXPECT_EQ(failed.native_number, 700);
  EXPECT_EQ(ask(made, results::success).state, probe_state::done);
}

TEST_F(marks, what_one_has_found_out_all_know_of_the_earlier_ones_of_the_stream) {
  const std::uint64_t first = mark();
  const std::uint64_t elsewhere = mark(other_);
  const std::uint64_t second = mark();
  EXPECT_FALSE(is_known_reached(first));
  EXPECT_EQ(ask(second, results::success).state, probe_state::done);
  EXPECT_TRUE(is_known_reached(first));
  EXPECT_FALSE(is_known_reached(elsewhere));
}

TEST_F(marks, are_made_ahead_and_no_more_than_allowed) {
  EXPECT_EQ(tables_.script.count("cuEventCreate"), 3);
  for (int each = 0; each < 3; ++each) {
    mark();
  }
  EXPECT_EQ(tables_.script.count("cuEventCreate"), 3);
  EXPECT_FALSE(events_.mark(stream_)) << "all are in use";
}

TEST_F(marks, an_empty_stream_frees_those_that_it_had_when_it_was_looked_at) {
  EXPECT_EQ(events_.marks_on(stream_), 0U) << "never marked";
  events_.note_drained(stream_, 0);
  const std::uint64_t first = mark();
  mark(other_);
  const std::uint64_t seen = events_.marks_on(stream_);
  const std::uint64_t later = mark();
  EXPECT_FALSE(events_.mark(stream_));
  events_.note_drained(stream_, seen);
  EXPECT_TRUE(is_known_reached(first));
  EXPECT_FALSE(is_known_reached(later));
  mark();
  EXPECT_FALSE(events_.mark(stream_)) << "one was free";
}

TEST_F(marks, the_event_used_last_is_used_first) {
  std::vector<std::uint64_t> made;
  for (int round = 0; round < 4; ++round) {
    made.push_back(mark());
    events_.note_drained(stream_, events_.marks_on(stream_));
  }
  const auto event_of = [](std::uint64_t token) { return token >> 48U & 0x3ffU; };
  for (const std::uint64_t each : made) {
    EXPECT_EQ(event_of(each), event_of(made.front()));
  }
}

TEST_F(marks, an_old_answer_of_a_used_again_event_is_never_wrong) {
  const std::uint64_t first = mark();
  events_.note_drained(stream_, events_.marks_on(stream_));
  const std::uint64_t second = mark();
  EXPECT_EQ(ask(first, results::not_ready).state, probe_state::done);
  EXPECT_EQ(ask(second, results::not_ready).state, probe_state::pending);
}

TEST_F(marks, a_failed_record_gives_the_event_back_and_throws) {
  tables_.script.answer("cuEventRecord", {700});
  testing::expect_error(
      errc::device_failed, "cuEventRecord", [&] { static_cast<void>(events_.mark(stream_)); });
  for (int each = 0; each < 3; ++each) {
    mark();
  }
  EXPECT_FALSE(events_.mark(stream_));
}

TEST_F(marks, more_streams_than_lanes_take_the_place_of_idle_ones) {
  completion_events many{device_, 2 * completion_events::most_streams};
  many.fill();
  std::vector<cuda::stream> streams;
  for (std::size_t each = 0; each <= completion_events::most_streams; ++each) {
    streams.push_back(device_.create_stream());
  }
  for (std::size_t each = 0; each < completion_events::most_streams; ++each) {
    ASSERT_TRUE(many.mark(streams[each]));
  }
  EXPECT_FALSE(many.mark(streams.back())) << "all have outstanding marks";
  many.note_drained(streams[5], 1);
  const auto made = many.mark(streams.back());
  ASSERT_TRUE(made);
  EXPECT_EQ(many.marks_on(streams.back()), 2U) << "the lane's count goes on";
  many.note_drained(streams[5], 7);  // of the stream that has no lane any more
  answer_ = results::not_ready;
  const completion_probe probe = many.probe(*made);
  EXPECT_EQ(probe.poll(probe.context, probe.token).state, probe_state::pending);
}

TEST_F(marks, are_over_together_when_the_last_of_each_stream_is) {
  EXPECT_EQ(events_.poll_all(), progress::done);
  mark();
  mark();
  mark(other_);
  tables_.script.answer("cuEventQuery", {results::success, results::not_ready});
  EXPECT_EQ(events_.poll_all(), progress::pending);
  EXPECT_EQ(events_.poll_all(), progress::done);
  EXPECT_EQ(tables_.script.count("cuEventQuery"), 3) << "what is known is not asked again";
  EXPECT_EQ(events_.poll_all(), progress::done);
  EXPECT_EQ(tables_.script.count("cuEventQuery"), 3);
  mark();
  tables_.script.answer("cuEventQuery", {700});
  testing::expect_error(
      errc::device_failed, "cuEventQuery", [&] { static_cast<void>(events_.poll_all()); });
}

}  // namespace
}  // namespace spark_comm::detail
