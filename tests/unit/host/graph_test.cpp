// SPDX-License-Identifier: AGPL-3.0-only
// Graphs: what was captured runs at every launch, in the order of the capture.
#include "driver_calls.hpp"

#include <spark_comm/cuda/abi.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace spark_comm::host_test {

namespace {

using abi::capture_mode;

class graphs : public driver_fixture {
 protected:
  void SetUp() override {
    driver_fixture::SetUp();
    s_ = make_stream();
  }

  void TearDown() override {
    EXPECT_EQ(cuStreamDestroy_v2(s_), results::success);
    driver_fixture::TearDown();
  }

  // Captures what `record` does on s_ and makes it executable.
  template <typename Record>
  abi::graph_exec capture(const Record& record) {
    abi::graph g = nullptr;
    abi::graph_exec exec = nullptr;
    EXPECT_EQ(cuStreamBeginCapture_v2(s_, capture_mode::global), results::success);
    record();
    EXPECT_EQ(cuStreamEndCapture(s_, &g), results::success);
    EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, g, 0), results::success);
    EXPECT_EQ(cuGraphDestroy(g), results::success);
    return exec;
  }

  static void add_one(void* total) { ++*static_cast<int*>(total); }

  void add(abi::stream s, int& total) {
    EXPECT_EQ(cuLaunchHostFunc(s, &add_one, &total), results::success);
  }

  abi::stream s_ = nullptr;
};

TEST_F(graphs, run_nothing_while_captured_and_all_at_each_launch) {
  int total = 0;
  abi::graph_exec exec = capture([&] {
    add(s_, total);
    add(s_, total);
  });
  EXPECT_EQ(cuStreamSynchronize(s_), results::success);
  EXPECT_EQ(total, 0);
  for (int launch = 1; launch <= 100; ++launch) {
    ASSERT_EQ(cuGraphLaunch(exec, s_), results::success);
  }
  EXPECT_EQ(cuStreamSynchronize(s_), results::success);
  EXPECT_EQ(total, 200);
  EXPECT_EQ(cuGraphExecDestroy(exec), results::success);
}

TEST_F(graphs, keep_the_order_of_the_stream) {
  auto* word = allocate<std::uint32_t>(3);
  abi::graph_exec exec = capture([&] {
    for (std::uint32_t value = 1; value <= 200; ++value) {
      ASSERT_EQ(cuStreamWriteValue32_v2(s_, address_of(word), value, 0), results::success);
    }
    ASSERT_EQ(cuMemcpyAsync(address_of(word + 1), address_of(word), sizeof(*word), s_),
              results::success);
  });
  ASSERT_EQ(cuGraphLaunch(exec, s_), results::success);
  ASSERT_EQ(cuMemcpyAsync(address_of(word + 2), address_of(word + 1), sizeof(*word), s_),
            results::success);
  EXPECT_EQ(cuStreamSynchronize(s_), results::success);
  EXPECT_EQ(word[2], 200U);
  EXPECT_EQ(cuGraphExecDestroy(exec), results::success);
  free_memory(word);
}

TEST_F(graphs, hold_forks_and_joins_of_several_streams) {
  abi::stream side = make_stream();
  abi::event fork = make_event();
  abi::event join = make_event();
  auto* word = allocate<std::uint32_t>(3);
  abi::graph_exec exec = capture([&] {
    ASSERT_EQ(cuStreamWriteValue32_v2(s_, address_of(word), 5, 0), results::success);
    ASSERT_EQ(cuEventRecord(fork, s_), results::success);
    ASSERT_EQ(cuStreamWaitEvent(side, fork, 0), results::success);
    ASSERT_EQ(cuMemcpyAsync(address_of(word + 1), address_of(word), sizeof(*word), side),
              results::success);
    ASSERT_EQ(cuEventRecord(join, side), results::success);
    ASSERT_EQ(cuStreamWaitEvent(s_, join, 0), results::success);
    ASSERT_EQ(cuMemcpyAsync(address_of(word + 2), address_of(word + 1), sizeof(*word), s_),
              results::success);
  });
  for (int launch = 0; launch < 3; ++launch) {
    word[0] = word[1] = word[2] = 0;
    ASSERT_EQ(cuGraphLaunch(exec, s_), results::success);
    EXPECT_EQ(cuStreamSynchronize(s_), results::success);
    EXPECT_EQ(word[2], 5U);
  }
  // The side stream is free again.
  EXPECT_EQ(cuStreamSynchronize(side), results::success);
  EXPECT_EQ(cuGraphExecDestroy(exec), results::success);
  free_memory(word);
  EXPECT_EQ(cuEventDestroy_v2(fork), results::success);
  EXPECT_EQ(cuEventDestroy_v2(join), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(side), results::success);
}

TEST_F(graphs, launches_of_one_executable_follow_each_other_over_streams) {
  abi::stream side = make_stream();
  gate door;
  int total = 0;
  abi::graph_exec exec = capture([&] { add(s_, total); });
  door.block(s_);
  ASSERT_EQ(cuGraphLaunch(exec, s_), results::success);
  ASSERT_EQ(cuGraphLaunch(exec, side), results::success);
  EXPECT_EQ(cuStreamQuery(side), results::not_ready);
  EXPECT_EQ(total, 0);
  door.open();
  EXPECT_EQ(cuStreamSynchronize(side), results::success);
  EXPECT_EQ(total, 2);
  EXPECT_EQ(cuGraphExecDestroy(exec), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(side), results::success);
}

TEST_F(graphs, may_be_destroyed_while_they_run) {
  gate door;
  int total = 0;
  abi::graph_exec exec = capture([&] { add(s_, total); });
  door.block(s_);
  ASSERT_EQ(cuGraphLaunch(exec, s_), results::success);
  EXPECT_EQ(cuGraphExecDestroy(exec), results::success);
  EXPECT_EQ(cuGraphLaunch(exec, s_), results::invalid_handle);
  door.open();
  EXPECT_EQ(cuStreamSynchronize(s_), results::success);
  EXPECT_EQ(total, 1);
}

TEST_F(graphs, nest_as_a_node_of_another) {
  int total = 0;
  abi::graph_exec inner = capture([&] { add(s_, total); });
  abi::graph_exec outer = capture([&] {
    ASSERT_EQ(cuGraphLaunch(inner, s_), results::success);
    ASSERT_EQ(cuGraphLaunch(inner, s_), results::success);
  });
  EXPECT_EQ(cuGraphExecDestroy(inner), results::success);
  ASSERT_EQ(cuGraphLaunch(outer, s_), results::success);
  EXPECT_EQ(cuStreamSynchronize(s_), results::success);
  EXPECT_EQ(total, 2);
  EXPECT_EQ(cuGraphExecDestroy(outer), results::success);
}

TEST_F(graphs, may_be_empty) {
  abi::graph_exec exec = capture([] {});
  ASSERT_EQ(cuGraphLaunch(exec, s_), results::success);
  EXPECT_EQ(cuStreamSynchronize(s_), results::success);
  EXPECT_EQ(cuGraphExecDestroy(exec), results::success);
}

TEST_F(graphs, of_wrong_handles_are_refused) {
  abi::graph_exec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, nullptr, 0), results::invalid_handle);
  EXPECT_EQ(cuGraphLaunch(nullptr, s_), results::invalid_handle);
  EXPECT_EQ(cuGraphExecDestroy(nullptr), results::invalid_handle);
  EXPECT_EQ(cuGraphDestroy(nullptr), results::invalid_handle);
  abi::graph g = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(s_, capture_mode::global), results::success);
  ASSERT_EQ(cuStreamEndCapture(s_, &g), results::success);
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, g, 64), results::invalid_value);
  EXPECT_EQ(cuGraphInstantiateWithFlags(nullptr, g, 0), results::invalid_value);
  EXPECT_EQ(cuGraphDestroy(g), results::success);
  EXPECT_EQ(cuGraphDestroy(g), results::invalid_handle);
}

}  // namespace

}  // namespace spark_comm::host_test
