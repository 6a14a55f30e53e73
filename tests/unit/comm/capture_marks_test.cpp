// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"
#include "support/scripted_tables.hpp"

#include <spark_comm/comm/detail/capture_marks.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/supervise/in_flight.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace spark_comm::detail {
namespace {

// The writes are kept, and made when a test runs the graph.
class marks_in_graphs : public ::testing::Test {
 protected:
  struct write {
    std::uint8_t* byte;
    std::uint8_t value;
  };

  void SetUp() override {
    tables_.script.on(
        "cuMemsetD8Async",
        std::function<int(cuda::abi::device_ptr, unsigned char, std::size_t, cuda::abi::stream)>{
            [this](auto address, auto value, auto bytes, auto) {
              EXPECT_EQ(bytes, 1U);
              captured_.push_back({std::bit_cast<std::uint8_t*>(address), value});
              return 0;
            }});
  }

  std::size_t capture() {
    const auto mark = marks_.begin(stream_);
    EXPECT_TRUE(mark);
    marks_.end(*mark, stream_);
    return *mark;
  }

  /// The device comes to the n-th write of what was captured.
  void reach(std::size_t n) { *captured_.at(n).byte = captured_.at(n).value; }

  probe_state ask(std::size_t mark) {
    const completion_probe probe = marks_.probe(mark);
    return probe.poll(probe.context, probe.token).state;
  }

  testing::scripted_tables tables_;
  cuda::device device_ = cuda::device::open(tables_.cuda.driver(), 0);
  cuda::stream stream_ = device_.create_stream();
  capture_marks marks_{device_};
  std::vector<write> captured_;
};

TEST_F(marks_in_graphs, a_run_is_known_from_the_second_look_to_its_end) {
  const std::size_t mark = capture();
  EXPECT_EQ(ask(mark), probe_state::done) << "captured, not run";
  reach(0);
  EXPECT_EQ(ask(mark), probe_state::done);
  EXPECT_EQ(ask(mark), probe_state::pending);
  EXPECT_EQ(ask(mark), probe_state::pending);
  reach(1);
  EXPECT_EQ(ask(mark), probe_state::done);
  EXPECT_EQ(ask(mark), probe_state::done);
}

TEST_F(marks_in_graphs, many_short_runs_are_never_taken_for_a_long_one) {
  const std::size_t mark = capture();
  for (int run = 0; run < 1000; ++run) {
    reach(0);  // every look comes in the middle of a run
    ASSERT_EQ(ask(mark), probe_state::done) << run;
    reach(1);
  }
}

TEST_F(marks_in_graphs, each_operation_has_its_own) {
  const std::size_t first = capture();
  const std::size_t second = capture();
  reach(2);
  ask(first);
  ask(second);
  EXPECT_EQ(ask(first), probe_state::done);
  EXPECT_EQ(ask(second), probe_state::pending);
}

TEST_F(marks_in_graphs, are_bounded) {
  for (std::size_t each = 0; each < capture_marks::most; ++each) {
    ASSERT_TRUE(marks_.begin(stream_));
  }
  EXPECT_FALSE(marks_.begin(stream_));
}

TEST_F(marks_in_graphs, a_write_that_cannot_be_captured_throws_and_takes_no_mark) {
  tables_.script.answer("cuMemsetD8Async", {700});
  testing::expect_error(
      errc::device_failed, "cuMemsetD8Async", [&] { static_cast<void>(marks_.begin(stream_)); });
  EXPECT_EQ(marks_.begin(stream_), 0U);
}

}  // namespace
}  // namespace spark_comm::detail
