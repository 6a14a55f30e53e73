// SPDX-License-Identifier: AGPL-3.0-only
// The queue as the runtime's own operations see it: tasks that wait, helping, and what a capture
// keeps alive.
#include "driver_calls.hpp"

#include <spark_comm/cuda/abi.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <host/stream.hpp>
#include <host/task.hpp>
#include <memory>
#include <thread>
#include <vector>

namespace spark_comm::host_test {

namespace {

using host::task;
using host::until;

task wait_then_count(std::shared_ptr<std::atomic<bool>> flag,
                     std::shared_ptr<std::atomic<int>> runs) {
  co_await until([&flag] { return flag->load(); });
  ++*runs;
}

class queue : public driver_fixture {
 protected:
  void SetUp() override {
    driver_fixture::SetUp();
    s_ = make_stream();
    target_ = host::find_stream(s_);
    ASSERT_NE(target_, nullptr);
  }

  void TearDown() override {
    target_.reset();
    EXPECT_EQ(cuStreamDestroy_v2(s_), results::success);
    driver_fixture::TearDown();
  }

  host::task_factory waiting_task() {
    return [flag = flag_, runs = runs_] { return wait_then_count(flag, runs); };
  }

  abi::stream s_ = nullptr;
  host::stream_ptr target_;
  std::shared_ptr<std::atomic<bool>> flag_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<int>> runs_ = std::make_shared<std::atomic<int>>(0);
};

TEST_F(queue, finds_streams_and_devices) {
  EXPECT_EQ(host::device_of(target_), 0);
  EXPECT_EQ(host::current_device(), 0);
  EXPECT_EQ(host::find_stream(&s_), nullptr);
  EXPECT_NE(host::find_stream(nullptr), nullptr);
  std::thread{[] {
    EXPECT_EQ(host::current_device(), -1);
    EXPECT_EQ(host::find_stream(nullptr), nullptr);
  }}.join();
}

TEST_F(queue, a_waiting_task_holds_the_stream_but_no_thread) {
  ASSERT_TRUE(host::enqueue(target_, waiting_task()));
  EXPECT_FALSE(host::help(target_));
  EXPECT_EQ(cuStreamQuery(s_), results::not_ready);
  flag_->store(true);
  EXPECT_TRUE(eventually([&] { return host::help(target_); }));
  EXPECT_EQ(*runs_, 1);
}

TEST_F(queue, a_task_without_waits_runs_when_helped) {
  flag_->store(true);
  for (int round = 1; round <= 1000; ++round) {
    ASSERT_TRUE(host::enqueue(target_, waiting_task()));
    EXPECT_TRUE(eventually([&] { return host::help(target_); }));
    EXPECT_EQ(*runs_, round);
  }
}

TEST_F(queue, the_factory_outlives_its_task) {
  const auto captured = std::make_shared<int>(3);
  std::atomic<int> seen = 0;
  // The coroutine refers to the captures of the lambda.
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-capturing-lambda-coroutines): this is what is tested
  ASSERT_TRUE(host::enqueue(target_, [captured, &seen, flag = flag_]() -> task {
    co_await until([&] { return flag->load(); });
    seen = *captured;
  }));
  EXPECT_FALSE(host::help(target_));
  flag_->store(true);
  EXPECT_EQ(cuStreamSynchronize(s_), results::success);
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(captured.use_count(), 1);
}

TEST_F(queue, streams_that_wait_for_each_other_advance_on_one_thread) {
  // Neither finishes without the other: the queries below alternate between them.
  const auto first_turn = std::make_shared<std::atomic<int>>(0);
  const auto ping = [](std::shared_ptr<std::atomic<int>> turn, int mine) -> task {
    for (int round = 0; round < 100; ++round) {
      co_await until([&] { return turn->load() % 2 == mine; });
      ++*turn;
    }
  };
  abi::stream other = make_stream();
  const host::stream_ptr other_target = host::find_stream(other);
  ASSERT_TRUE(host::enqueue(target_, [=] { return ping(first_turn, 0); }));
  ASSERT_TRUE(host::enqueue(other_target, [=] { return ping(first_turn, 1); }));
  EXPECT_TRUE(eventually([&] {
    const bool is_first_done = host::help(target_);
    return host::help(other_target) && is_first_done;
  }));
  EXPECT_EQ(*first_turn, 200);
  EXPECT_EQ(cuStreamDestroy_v2(other), results::success);
}

TEST_F(queue, a_captured_task_is_made_anew_at_each_launch) {
  abi::graph g = nullptr;
  abi::graph_exec exec = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(s_, abi::capture_mode::relaxed), results::success);
  EXPECT_TRUE(host::is_capturing(target_));
  ASSERT_TRUE(host::enqueue(target_, waiting_task()));
  ASSERT_TRUE(host::enqueue(target_, waiting_task()));
  ASSERT_EQ(cuStreamEndCapture(s_, &g), results::success);
  EXPECT_FALSE(host::is_capturing(target_));
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, g, 0), results::success);
  ASSERT_EQ(cuGraphLaunch(exec, s_), results::success);
  ASSERT_EQ(cuGraphLaunch(exec, s_), results::success);
  EXPECT_FALSE(host::help(target_));
  flag_->store(true);
  EXPECT_EQ(cuStreamSynchronize(s_), results::success);
  EXPECT_EQ(*runs_, 4);
  EXPECT_EQ(cuGraphExecDestroy(exec), results::success);
  EXPECT_EQ(cuGraphDestroy(g), results::success);
}

TEST_F(queue, a_broken_capture_takes_no_work) {
  ASSERT_EQ(cuStreamBeginCapture_v2(s_, abi::capture_mode::relaxed), results::success);
  EXPECT_EQ(cuStreamQuery(s_), results::stream_capture_unsupported);
  EXPECT_FALSE(host::enqueue(target_, waiting_task()));
  abi::graph g = nullptr;
  EXPECT_EQ(cuStreamEndCapture(s_, &g), results::stream_capture_invalidated);
}

TEST_F(queue, graphs_and_executables_keep_what_was_retained) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = held;
  abi::graph g = nullptr;
  abi::graph_exec first = nullptr;
  abi::graph_exec second = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(s_, abi::capture_mode::global), results::success);
  host::retain_in_capture(target_, std::move(held));
  ASSERT_EQ(cuStreamEndCapture(s_, &g), results::success);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&first, g, 0), results::success);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&second, g, 0), results::success);
  EXPECT_EQ(cuGraphDestroy(g), results::success);
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(cuGraphExecDestroy(first), results::success);
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(cuGraphExecDestroy(second), results::success);
  EXPECT_TRUE(alive.expired());
}

TEST_F(queue, a_broken_capture_lets_go_of_what_was_retained) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = held;
  ASSERT_EQ(cuStreamBeginCapture_v2(s_, abi::capture_mode::global), results::success);
  host::retain_in_capture(target_, std::move(held));
  EXPECT_EQ(cuStreamQuery(s_), results::stream_capture_unsupported);
  EXPECT_FALSE(alive.expired());
  abi::graph g = nullptr;
  EXPECT_EQ(cuStreamEndCapture(s_, &g), results::stream_capture_invalidated);
  EXPECT_TRUE(alive.expired());
}

TEST_F(queue, allocations_are_found_by_inner_addresses) {
  auto* base = static_cast<char*>(host::allocate_device_memory(1000));
  ASSERT_NE(base, nullptr);
  host::allocation_info info;
  EXPECT_TRUE(host::find_allocation(base + 999, info));
  EXPECT_EQ(info.base, base);
  EXPECT_EQ(info.bytes, 1000U);
  EXPECT_EQ(info.device, 0);
  EXPECT_FALSE(host::find_allocation(base + 1000, info));
  EXPECT_FALSE(host::find_allocation(&info, info));
  EXPECT_TRUE(host::free_device_memory(base));
  EXPECT_FALSE(host::free_device_memory(base));
}

}  // namespace

}  // namespace spark_comm::host_test
