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

#include <cstdint>
#include <optional>

namespace spark_comm::detail {
namespace {

namespace results = cuda::abi::results;

class pairs : public ::testing::Test {
 protected:
  void SetUp() override { events_.fill(); }

  std::uint64_t launch() {
    const std::optional<std::uint64_t> pair = events_.begin(stream_);
    EXPECT_TRUE(pair);
    events_.end(*pair, stream_);
    return *pair;
  }

  probe_result ask(std::uint64_t pair, std::initializer_list<int> answers) {
    tables_.script.answer("cuEventQuery", answers);
    const completion_probe probe = events_.probe(pair);
    return probe.poll(probe.context, probe.token);
  }

  void release(std::uint64_t pair) {
    const completion_probe probe = events_.probe(pair);
    probe.release(probe.context, probe.token);
  }

  testing::scripted_tables tables_;
  cuda::device device_ = cuda::device::open(tables_.cuda.driver(), 0);
  cuda::stream stream_ = device_.create_stream();
  completion_events events_{device_, 2};
};

TEST_F(pairs, tell_queued_running_done_and_failed_apart) {
  const std::uint64_t pair = launch();
  EXPECT_EQ(ask(pair, {results::not_ready, results::not_ready}).state, probe_state::queued);
  EXPECT_EQ(ask(pair, {results::not_ready, results::success}).state, probe_state::running);
  EXPECT_EQ(ask(pair, {results::success}).state, probe_state::done);
  const probe_result failed = ask(pair, {700});
  EXPECT_EQ(failed.state, probe_state::failed);
  EXPECT_EQ(failed.code, errc::device_failed);
  EXPECT_EQ(failed.native_number, 700);
  EXPECT_EQ(ask(pair, {results::not_ready, 719}).native_number, 719);
}

TEST_F(pairs, are_made_ahead_and_no_more_than_allowed) {
  EXPECT_EQ(tables_.script.count("cuEventCreate"), 4);
  static_cast<void>(launch());
  static_cast<void>(launch());
  EXPECT_EQ(tables_.script.count("cuEventCreate"), 4);
  EXPECT_FALSE(events_.begin(stream_)) << "both are in use";
}

TEST_F(pairs, come_back_when_released_or_put_back) {
  const std::uint64_t first = launch();
  const std::uint64_t second = launch();
  for (int round = 0; round < 5; ++round) {
    release(first);
    EXPECT_EQ(launch(), first);
    events_.put_back(second);
    EXPECT_EQ(launch(), second);
  }
  EXPECT_EQ(tables_.script.count("cuEventCreate"), 4);
}

TEST_F(pairs, a_failed_record_gives_the_pair_back_and_throws) {
  tables_.script.answer("cuEventRecord", {700});
  testing::expect_error(
      errc::device_failed, "cuEventRecord", [&] { static_cast<void>(events_.begin(stream_)); });
  static_cast<void>(launch());
  static_cast<void>(launch());
  EXPECT_FALSE(events_.begin(stream_));
}

TEST_F(pairs, are_over_together_when_all_are) {
  EXPECT_EQ(events_.poll_all(), progress::done);
  static_cast<void>(launch());
  static_cast<void>(launch());
  tables_.script.answer("cuEventQuery", {results::success, results::not_ready});
  EXPECT_EQ(events_.poll_all(), progress::pending);
  EXPECT_EQ(events_.poll_all(), progress::done);
  tables_.script.answer("cuEventQuery", {700});
  testing::expect_error(
      errc::device_failed, "cuEventQuery", [&] { static_cast<void>(events_.poll_all()); });
}

}  // namespace
}  // namespace spark_comm::detail
