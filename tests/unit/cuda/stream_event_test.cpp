// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"
#include "support/log_capture.hpp"
#include "support/scripted_tables.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/stream.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

namespace spark_comm::cuda {
namespace {

using namespace std::chrono_literals;
using testing::expect_error;

class cuda_objects : public ::testing::Test {
 protected:
  testing::scripted_tables native_;
  testing::log_capture log_;
  device device_ = device::open(native_.cuda.driver(log_.log()), 0);
};

using stream_objects = cuda_objects;
using event_objects = cuda_objects;

TEST_F(stream_objects, created_without_waiting_for_the_default_stream) {
  unsigned int flags = 0;
  SCRIPTED_CALL(api, cuStreamCreate)::handle(native_.script, [&](abi::stream* out, unsigned int f) {
    flags = f;
    *out = reinterpret_cast<abi::stream>(0x10);
    return 0;
  });
  native_.script.answer("cuStreamDestroy_v2", {0});
  const stream made = device_.create_stream();
  EXPECT_EQ(flags, abi::flags::stream_non_blocking);
  EXPECT_EQ(made.ref().get(), reinterpret_cast<abi::stream>(0x10));
}

TEST_F(stream_objects, destroyed_once_however_often_moved) {
  {
    stream first = device_.create_stream();
    stream second = std::move(first);
    stream third = device_.create_stream();
    third = std::move(second);
    EXPECT_EQ(native_.cuda.live_handles(), 1U);
    std::swap(third, second = device_.create_stream());
  }
  EXPECT_EQ(native_.cuda.live_handles(), 0U);
  EXPECT_EQ(log_.size(), 0U) << log_.text();
}

TEST_F(stream_objects, moved_from_is_refused_in_every_call) {
  stream first = device_.create_stream();
  event point = device_.create_event();
  point.record(first);
  const stream second = std::move(first);
  // NOLINTBEGIN(bugprone-use-after-move): the subject
  expect_error(errc::invalid_usage, "moved from", [&] { return first.ref(); });
  expect_error(errc::invalid_usage, "moved from", [&] { return first.poll(); });
  expect_error(errc::invalid_usage, "moved from", [&] { return first.wait(1s); });
  expect_error(errc::invalid_usage, "moved from", [&] { first.wait_for(point); });
  expect_error(
      errc::invalid_usage, "moved from", [&] { first.launch_host([](void*) {}, nullptr); });
  expect_error(errc::invalid_usage, "moved from", [&] { return device_.poll(first); });
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_EQ(second.poll(), progress::done);
}

TEST_F(stream_objects, failed_destroy_is_reported_and_not_thrown) {
  native_.script.answer("cuStreamDestroy_v2", {abi::results::illegal_address});
  {
    const stream made = device_.create_stream();
  }
  EXPECT_NE(log_.text().find("cuStreamDestroy_v2 returned 700"), std::string::npos);
}

TEST_F(stream_objects, failed_create_owns_nothing) {
  native_.script.answer("cuStreamCreate", {abi::results::out_of_memory});
  expect_error(errc::out_of_memory, "cuStreamCreate", [&] { return device_.create_stream(); });
  EXPECT_EQ(native_.script.count("cuStreamDestroy_v2"), 0);
}

TEST_F(stream_objects, waits_only_for_recorded_events) {
  const stream made = device_.create_stream();
  event point = device_.create_event();
  expect_error(errc::invalid_usage, "never recorded", [&] { made.wait_for(point); });
  EXPECT_EQ(native_.script.count("cuStreamWaitEvent"), 0);
  point.record(made);
  EXPECT_NO_THROW(made.wait_for(point));
  const event taken = std::move(point);
  // NOLINTNEXTLINE(bugprone-use-after-move): the subject
  expect_error(errc::invalid_usage, "moved from", [&] { made.wait_for(point); });
  EXPECT_NO_THROW(made.wait_for(taken));
}

TEST_F(stream_objects, host_function_is_handed_to_the_driver_with_its_data) {
  const stream made = device_.create_stream();
  SCRIPTED_CALL(api, cuLaunchHostFunc)::handle(
      native_.script, [](abi::stream, abi::host_function function, void* data) {
        function(data);
        return 0;
      });
  int runs = 0;
  made.launch_host([](void* data) { ++*static_cast<int*>(data); }, &runs);
  EXPECT_EQ(runs, 1);
  expect_error(errc::invalid_argument, "null", [&] { made.launch_host(nullptr, nullptr); });
}

TEST_F(event_objects, timing_is_off_unless_asked_for) {
  std::vector<unsigned int> flags;
  SCRIPTED_CALL(api, cuEventCreate)::handle(native_.script, [&](abi::event* out, unsigned int f) {
    flags.push_back(f);
    *out = nullptr;
    return 0;
  });
  static_cast<void>(device_.create_event());
  static_cast<void>(device_.create_timed_event());
  EXPECT_EQ(flags, (std::vector<unsigned int>{abi::flags::event_disable_timing, 0}));
}

TEST_F(event_objects, never_recorded_is_an_error_and_not_done) {
  const event point = device_.create_event();
  EXPECT_FALSE(point.is_recorded());
  expect_error(errc::invalid_usage, "never recorded", [&] { return point.poll(); });
  expect_error(errc::invalid_usage, "never recorded", [&] { return point.wait(1s); });
  expect_error(
      errc::invalid_usage, "never recorded", [&] { return event::elapsed_ms(point, point); });
  EXPECT_EQ(native_.script.count("cuEventQuery"), 0);
}

TEST_F(event_objects, three_answers_three_outcomes) {
  const stream made = device_.create_stream();
  event point = device_.create_event();
  point.record(made);
  EXPECT_TRUE(point.is_recorded());
  EXPECT_EQ(point.poll(), progress::done);
  native_.script.answer("cuEventQuery", {abi::results::not_ready, abi::results::illegal_address});
  EXPECT_EQ(point.poll(), progress::pending);
  expect_error(errc::device_failed, "cuEventQuery returned 700", [&] { return point.poll(); });
}

TEST_F(event_objects, record_again_moves_the_point) {
  const stream made = device_.create_stream();
  event point = device_.create_event();
  point.record(made);
  EXPECT_EQ(point.poll(), progress::done);
  point.record(made);
  native_.script.answer("cuEventQuery", {abi::results::not_ready});
  EXPECT_EQ(point.poll(), progress::pending);
  EXPECT_EQ(native_.script.count("cuEventRecord"), 2);
}

TEST_F(event_objects, failed_first_record_leaves_it_never_recorded) {
  const stream made = device_.create_stream();
  event point = device_.create_event();
  native_.script.answer("cuEventRecord", {abi::results::invalid_handle});
  expect_error(errc::invalid_argument, "cuEventRecord", [&] { point.record(made); });
  EXPECT_FALSE(point.is_recorded());
  EXPECT_EQ(native_.cuda.current(), nullptr);
}

TEST_F(event_objects, recorded_in_a_capture_is_never_queried) {
  const stream made = device_.create_stream();
  event point = device_.create_event();
  native_.cuda.set_capturing(made.ref().get(), true);
  point.record(made);
  EXPECT_NO_THROW(made.wait_for(point)) << "a stream of the capture may wait for it";
  expect_error(errc::invalid_usage, "being captured", [&] { return point.poll(); });
  expect_error(errc::invalid_usage, "being captured", [&] { return point.wait(1s); });
  EXPECT_EQ(native_.script.count("cuEventQuery"), 0) << "the question would end the capture";
  native_.cuda.set_capturing(made.ref().get(), false);
  point.record(made);
  EXPECT_EQ(point.poll(), progress::done);
}

TEST_F(event_objects, query_relaxes_the_capture_mode_and_puts_it_back) {
  const stream made = device_.create_stream();
  event point = device_.create_event();
  point.record(made);
  SCRIPTED_CALL(api, cuEventQuery)::handle(native_.script, [&](abi::event) {
    EXPECT_EQ(native_.cuda.capture_mode(), abi::capture_mode::relaxed);
    return abi::results::not_ready;
  });
  EXPECT_EQ(point.poll(), progress::pending);
  EXPECT_EQ(point.wait(0ns), wait_result::timed_out);
  EXPECT_EQ(native_.cuda.capture_mode(), abi::capture_mode::global);
}

TEST_F(event_objects, moved_from_is_refused_in_every_call) {
  const stream made = device_.create_stream();
  event first = device_.create_event();
  first.record(made);
  const event second = std::move(first);
  // NOLINTBEGIN(bugprone-use-after-move): the subject
  expect_error(errc::invalid_usage, "moved from", [&] { first.record(made); });
  expect_error(errc::invalid_usage, "moved from", [&] { return first.poll(); });
  expect_error(errc::invalid_usage, "moved from", [&] { return first.wait(1s); });
  expect_error(errc::invalid_usage, "moved from", [&] { return event::elapsed_ms(first, second); });
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_EQ(second.wait(1s), wait_result::done);
}

TEST_F(event_objects, elapsed_time_needs_two_reached_points) {
  const stream made = device_.create_stream();
  event start = device_.create_timed_event();
  event end = device_.create_timed_event();
  start.record(made);
  end.record(made);
  SCRIPTED_CALL(api, cuEventElapsedTime)::handle(native_.script,
                                                 [](float* ms, abi::event, abi::event) {
                                                   *ms = 1.5F;
                                                   return 0;
                                                 });
  EXPECT_FLOAT_EQ(event::elapsed_ms(start, end), 1.5F);
  native_.script.answer("cuEventQuery", {0, abi::results::not_ready});
  expect_error(errc::invalid_usage, "not reached", [&] { return event::elapsed_ms(start, end); });
}

}  // namespace
}  // namespace spark_comm::cuda
