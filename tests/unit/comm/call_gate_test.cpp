// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/call_gate.hpp>
#include <spark_comm/core/time.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace spark_comm::detail {
namespace {

using namespace std::chrono_literals;

TEST(call_gate, lets_one_issuer_in_at_a_time) {
  call_gate gate;
  EXPECT_EQ(gate.enter_as_issuer(), call_gate::entry::entered);
  EXPECT_EQ(gate.enter_as_issuer(), call_gate::entry::busy);
  EXPECT_EQ(gate.enter_as_poller(), call_gate::entry::busy);
  gate.leave();
  EXPECT_EQ(gate.enter_as_poller(), call_gate::entry::entered);
  EXPECT_EQ(gate.enter_as_poller(), call_gate::entry::busy);
  gate.leave();
  EXPECT_EQ(gate.enter_as_issuer(), call_gate::entry::entered);
  gate.leave();
}

TEST(call_gate, stays_closed_for_ever) {
  call_gate gate;
  gate.close();
  EXPECT_EQ(gate.enter_as_issuer(), call_gate::entry::closed);
  EXPECT_EQ(gate.enter_as_poller(), call_gate::entry::closed);
  gate.close();
  EXPECT_EQ(gate.enter_as_issuer(), call_gate::entry::closed);
}

TEST(call_gate, closing_waits_for_the_one_inside_up_to_the_deadline) {
  call_gate gate;
  ASSERT_EQ(gate.enter_as_issuer(), call_gate::entry::entered);
  gate.close();
  EXPECT_FALSE(gate.wait_until_empty(deadline::after(1ms)));
  gate.leave();
  EXPECT_TRUE(gate.wait_until_empty(deadline::after(0ms)));
  EXPECT_EQ(gate.enter_as_issuer(), call_gate::entry::closed) << "leaving must not reopen it";
}

TEST(call_gate, an_issuer_waits_for_a_poller) {
  call_gate gate;
  ASSERT_EQ(gate.enter_as_poller(), call_gate::entry::entered);
  std::atomic<bool> is_trying{false};
  std::thread issuer{[&] {
    is_trying = true;
    EXPECT_EQ(gate.enter_as_issuer(), call_gate::entry::entered);
    gate.leave();
  }};
  while (!is_trying) {
    std::this_thread::yield();
  }
  gate.leave();
  issuer.join();
}

TEST(call_gate, never_has_two_inside_whoever_comes) {
  call_gate gate;
  std::atomic<int> inside{0};
  std::atomic<int> entered{0};
  const auto visit = [&](call_gate::entry answer) {
    if (answer == call_gate::entry::entered) {
      EXPECT_EQ(inside.fetch_add(1), 0);
      entered.fetch_add(1);
      inside.fetch_sub(1);
      gate.leave();
    }
  };
  std::vector<std::thread> threads;
  for (int issuer = 0; issuer < 2; ++issuer) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        visit(gate.enter_as_issuer());
      }
    });
  }
  threads.emplace_back([&] {
    for (int round = 0; round < 2000; ++round) {
      visit(gate.enter_as_poller());
    }
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_GT(entered.load(), 0);
}

TEST(gate_pass, leaves_at_the_end_of_the_scope) {
  call_gate gate;
  ASSERT_EQ(gate.enter_as_issuer(), call_gate::entry::entered);
  {
    const gate_pass pass{gate};
  }
  EXPECT_EQ(gate.enter_as_issuer(), call_gate::entry::entered);
  gate.leave();
}

}  // namespace
}  // namespace spark_comm::detail
