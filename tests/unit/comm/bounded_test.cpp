// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/bounded.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

namespace spark_comm::detail {
namespace {

using namespace std::chrono_literals;

TEST(bounded_call, runs_on_another_thread_and_waits) {
  std::thread::id ran_on;
  bounded_call call{[&] { ran_on = std::this_thread::get_id(); }};
  EXPECT_EQ(call.wait(deadline::after(10s)), wait_result::done);
  EXPECT_NE(ran_on, std::this_thread::get_id());
  EXPECT_EQ(call.poll(), progress::done);
}

TEST(bounded_call, hands_on_what_was_thrown_each_time) {
  bounded_call call{[] { throw std::runtime_error{"inside"}; }};
  EXPECT_THROW(static_cast<void>(call.wait(deadline::after(10s))), std::runtime_error);
  EXPECT_THROW(static_cast<void>(call.wait(deadline::after(10s))), std::runtime_error);
  EXPECT_THROW(static_cast<void>(call.poll()), std::runtime_error);
}

TEST(bounded_call, leaves_behind_what_does_not_return) {
  std::promise<void> release;
  const auto ended = std::make_shared<std::promise<void>>();
  std::future<void> has_ended = ended->get_future();
  {
    bounded_call call{[gate = release.get_future().share(), ended] {
      gate.wait();
      ended->set_value();
    }};
    EXPECT_EQ(call.wait(deadline::after(1ms)), wait_result::timed_out);
    EXPECT_EQ(call.poll(), progress::pending);
  }
  release.set_value();  // the thread goes on after its owner has gone, and touches nothing of it
  EXPECT_EQ(has_ended.wait_for(10s), std::future_status::ready);
}

TEST(bounded_call, lets_go_of_what_it_owned_before_it_is_over) {
  auto owned = std::make_shared<int>(7);
  const std::weak_ptr<int> watch = owned;
  bounded_call call{[owned = std::move(owned)] {}};
  EXPECT_EQ(call.wait(deadline::after(10s)), wait_result::done);
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace spark_comm::detail
