// SPDX-License-Identifier: AGPL-3.0-only
// Capture into graphs, and that nothing of ours breaks a capture, on each runtime.
#include "support/cuda_runtimes.hpp"
#include "support/expect_error.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/graph.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>

namespace spark_comm::cuda {
namespace {

using namespace std::chrono_literals;
using testing::expect_error;
using testing::stream_gate;

constexpr auto long_enough = 20s;
constexpr std::size_t some_bytes = 4096;

class capture : public testing::cuda_contract {
 protected:
  void fill(std::uint8_t value, stream_ref s) const {
    fill_async(device_, memory_.address(), value, some_bytes, s);
  }

  [[nodiscard]] std::uint8_t first_byte() const { return *memory_.as<std::uint8_t>(); }

  void run(const graph_exec& exec) const {
    exec.launch(stream_);
    ASSERT_EQ(stream_.wait(long_enough), wait_result::done);
  }

  stream stream_ = device_.create_stream();
  pinned_buffer memory_ = pinned_buffer::allocate(device_, some_bytes);
};

INSTANTIATE_TEST_SUITE_P(runtime,
                         capture,
                         ::testing::ValuesIn(testing::cuda_runtimes()),
                         testing::name_of_runtime);

TEST_P(capture, records_and_runs_at_each_launch) {
  fill(1, stream_);
  ASSERT_EQ(stream_.wait(long_enough), wait_result::done);
  capture_scope scope{device_, stream_};
  EXPECT_TRUE(device_.is_capturing(stream_));
  fill(2, stream_);
  const graph_exec exec = scope.end().instantiate();
  EXPECT_FALSE(device_.is_capturing(stream_));
  EXPECT_EQ(first_byte(), 1) << "recorded, not run";
  for (int i = 0; i < 3; ++i) {
    fill(1, stream_);
    run(exec);
    EXPECT_EQ(first_byte(), 2);
  }
  EXPECT_EQ(current(), nullptr);
}

TEST_P(capture, follows_events_into_other_streams) {
  const stream side = device_.create_stream();
  event fork = device_.create_event();
  event join = device_.create_event();
  capture_scope scope{device_, stream_};
  fork.record(stream_);
  side.wait_for(fork);
  fill(3, side);
  join.record(side);
  stream_.wait_for(join);
  const graph_exec exec = scope.end().instantiate();
  run(exec);
  EXPECT_EQ(first_byte(), 3);
}

TEST_P(capture, asking_the_capturing_stream_is_refused_and_harmless) {
  event point = device_.create_event();
  capture_scope scope{device_, stream_};
  fill(4, stream_);
  point.record(stream_);
  expect_error(errc::invalid_usage, "is being captured", [&] { return stream_.poll(); });
  expect_error(errc::invalid_usage, "is being captured", [&] { return stream_.wait(1s); });
  expect_error(errc::invalid_usage, "being captured", [&] { return point.poll(); });
  expect_error(errc::invalid_usage, "being captured", [&] { return point.wait(1s); });
  const graph_exec exec = scope.end().instantiate();
  run(exec);
  EXPECT_EQ(first_byte(), 4);
}

// The engine captures in CUDA's default mode, in which a query or an allocation of any thread would
// break the capture; ours must not.
TEST_P(capture, is_not_broken_by_our_polls_waits_and_buffers) {
  const stream older = device_.create_stream();
  event point = device_.create_event();
  stream_gate gate;
  gate.hold(older);
  point.record(older);
  driver_.check(
      driver_.table().cuStreamBeginCapture_v2(stream_.ref().get(), abi::capture_mode::global),
      "cuStreamBeginCapture_v2");
  fill(5, stream_);
  const auto ask = [&] {
    EXPECT_EQ(older.poll(), progress::pending);
    EXPECT_EQ(point.poll(), progress::pending);
    EXPECT_EQ(point.wait(5ms), wait_result::timed_out);
    EXPECT_EQ(older.wait(5ms), wait_result::timed_out);
    static_cast<void>(device_buffer::allocate(device_, some_bytes));
    static_cast<void>(pinned_buffer::allocate(device_, some_bytes));
  };
  std::jthread{ask}.join();
  ask();
  abi::graph recorded = nullptr;
  const abi::result code = driver_.table().cuStreamEndCapture(stream_.ref().get(), &recorded);
  EXPECT_EQ(code, abi::results::success) << "the capture was broken";
  driver_.check(driver_.table().cuGraphDestroy(recorded), "cuGraphDestroy");
  gate.open();
  EXPECT_EQ(point.wait(long_enough), wait_result::done);
}

TEST_P(capture, given_up_leaves_the_stream_as_before) {
  fill(1, stream_);
  ASSERT_EQ(stream_.wait(long_enough), wait_result::done);
  {
    const capture_scope scope{device_, stream_};
    fill(6, stream_);
  }
  EXPECT_FALSE(device_.is_capturing(stream_));
  EXPECT_EQ(stream_.wait(long_enough), wait_result::done);
  EXPECT_EQ(first_byte(), 1);
}

TEST_P(capture, with_an_unjoined_stream_fails_and_both_streams_go_on) {
  const stream side = device_.create_stream();
  event fork = device_.create_event();
  capture_scope scope{device_, stream_};
  fork.record(stream_);
  side.wait_for(fork);
  fill(7, side);
  expect_error(errc::invalid_usage, "cuStreamEndCapture returned 904", [&] { return scope.end(); });
  EXPECT_EQ(stream_.wait(long_enough), wait_result::done);
  EXPECT_EQ(side.wait(long_enough), wait_result::done);
}

TEST_P(capture, of_a_capturing_stream_is_refused) {
  capture_scope scope{device_, stream_};
  EXPECT_THROW((capture_scope{device_, stream_}), error);
  static_cast<void>(scope);
}

TEST_P(capture, is_not_ended_well_by_another_thread_and_the_stream_goes_on) {
  {
    capture_scope scope{device_, stream_};
    fill(8, stream_);
    std::jthread{[&] {
      abi::graph recorded = nullptr;
      EXPECT_EQ(driver_.table().cuStreamEndCapture(stream_.ref().get(), &recorded),
                abi::results::stream_capture_wrong_thread);
      EXPECT_EQ(recorded, nullptr);
    }}.join();
    // Whether the attempt ends the capture is the runtime's own affair.
    if (device_.is_capturing(stream_)) {
      static_cast<void>(scope.end());
    } else {
      EXPECT_THROW(static_cast<void>(scope.end()), error);
    }
  }
  fill(1, stream_);
  EXPECT_EQ(stream_.wait(long_enough), wait_result::done);
  EXPECT_EQ(first_byte(), 1);
}

TEST_P(capture, graph_outlives_what_it_was_made_of) {
  std::optional<graph_exec> exec;
  {
    const stream other = device_.create_stream();
    capture_scope scope{device_, other};
    fill(9, other);
    exec = scope.end().instantiate();
  }
  run(*exec);
  EXPECT_EQ(first_byte(), 9);
}

}  // namespace
}  // namespace spark_comm::cuda
