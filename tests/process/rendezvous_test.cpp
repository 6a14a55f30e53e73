// SPDX-License-Identifier: AGPL-3.0-only
// Ranks that are killed, stopped, late, or never come.
#include "process/children.hpp"
#include "unit/rendezvous/ranks.hpp"
#include "unit/rendezvous/raw_peer.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <sys/resource.h>
#include <sys/time.h>
#include <thread>

namespace spark_comm::rendezvous::testing {
namespace {

using spark_comm::testing::child;
using spark_comm::testing::teller;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Tells the address, then "met" or the error, then sleeps with the session open.
auto rank_that_stays(std::string where, int rank, int world_size, duration limit = 20s) {
  return [=](const teller& tell) {
    meeting_options options = quiet();
    options.on_listening = tell;
    const outcome out =
        try_meet({.address = where, .rank = rank, .world_size = world_size}, {}, limit, options);
    tell(out.text());
    std::this_thread::sleep_for(1min);
  };
}

class closures final : public session_listener {
 public:
  void on_message(int /*peer*/, std::span<const std::byte> /*message*/) noexcept override {}

  void on_closed(int peer, const std::string& /*reason*/) noexcept override {
    const std::scoped_lock lock{mutex_};
    lost_.insert(peer);
    changed_.notify_all();
  }

  bool wait_for(int peer) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, 5s, [&] { return lost_.contains(peer); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int> lost_;
};

TEST(rendezvous, a_stopped_listener_is_connected_to_but_does_not_answer) {
  const raw_listener frozen;  // its owner never accepts
  const outcome out = worker(frozen.where(), 1, 2, 1500ms).get();
  EXPECT_EQ(out.failure.value().kind(), errc::timed_out);
  EXPECT_THAT(out.text(), HasSubstr("connected to " + frozen.where()));
  EXPECT_THAT(out.text(), HasSubstr("the handshake was not answered"));
  EXPECT_GE(out.took, 1500ms);
  EXPECT_LT(out.took, 2500ms);
}

TEST(rendezvous, a_true_head_in_place_of_a_stopped_listener_is_found) {
  const raw_listener holder{raw_listener::mode::holds_port};
  const auto port = parse_address(holder.where()).port;
  child frozen{[&](const teller& tell) {
    const raw_socket listener;
    const int on = 1;
    ::setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in at = loopback(port);
    if (::bind(listener.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        ::listen(listener.fd(), 16) != 0) {
      throw std::runtime_error{"cannot listen"};
    }
    tell("listening");
    ::raise(SIGSTOP);
  }};
  ASSERT_EQ(frozen.line(), "listening");
  auto other = worker(holder.where(), 1, 2);
  std::this_thread::sleep_for(300ms);
  frozen.signal(SIGKILL);
  frozen.wait();
  const time_point begin = steady_time().now();
  head first{2, 10s, {}, holder.where()};
  EXPECT_TRUE(other.get().is_met());
  EXPECT_TRUE(first.result().is_met());
  EXPECT_LT(steady_time().now() - begin, 2s);
}

TEST(rendezvous, a_killed_head_starts_again_on_its_port) {
  child dead{rank_that_stays("127.0.0.1:0", 0, 3)};
  const std::string where = dead.line();
  child joined{rank_that_stays(where, 1, 3)};
  std::this_thread::sleep_for(200ms);
  dead.signal(SIGKILL);
  dead.wait();
  head again{3, 10s, {}, where};
  auto other = worker(where, 2, 3);
  EXPECT_TRUE(other.get().is_met());
  EXPECT_TRUE(again.result().is_met());
  EXPECT_EQ(joined.line(), "met");
}

TEST(rendezvous, a_head_may_come_after_its_workers) {
  const raw_listener holder{raw_listener::mode::holds_port};
  auto other = worker(holder.where(), 1, 2);
  std::this_thread::sleep_for(1s);
  head first{2, 10s, {}, holder.where()};
  const outcome out = other.get();
  EXPECT_TRUE(out.is_met()) << out.text();
  EXPECT_LT(out.took, 2s);
  EXPECT_TRUE(first.result().is_met());
}

TEST(rendezvous, a_worker_killed_while_it_waits_frees_its_place) {
  head first{3};
  child dead{rank_that_stays(first.where(), 1, 3)};
  std::this_thread::sleep_for(200ms);
  dead.signal(SIGKILL);
  dead.wait();
  auto one = worker(first.where(), 1, 3);
  auto two = worker(first.where(), 2, 3);
  EXPECT_TRUE(one.get().is_met());
  EXPECT_TRUE(two.get().is_met());
  EXPECT_TRUE(first.result().is_met());
}

TEST(rendezvous, survivors_of_a_kill_while_joining_are_told_who_is_missing) {
  head first{4, 1500ms};
  auto one = worker(first.where(), 1, 4, 1500ms);
  child dead{rank_that_stays(first.where(), 2, 4)};
  std::this_thread::sleep_for(300ms);
  dead.signal(SIGKILL);
  const outcome zero = first.result();
  const outcome other = one.get();
  for (const outcome* out : {&zero, &other}) {
    EXPECT_EQ(out->failure.value().kind(), errc::timed_out) << out->text();
    EXPECT_EQ(out->failure->context().peers, (std::vector{2, 3})) << out->text();
  }
  EXPECT_THAT(zero.text(), HasSubstr("rank 2 came and was lost"));
}

TEST(rendezvous, a_killed_peer_is_reported_within_a_tenth_of_a_second) {
  closures heard;
  closures heard_by_one;
  head first{3};
  auto one = worker(first.where(), 1, 3);
  child dead{rank_that_stays(first.where(), 2, 3)};
  outcome zero = first.result();
  outcome other = one.get();
  ASSERT_TRUE(zero.is_met()) << zero.text();
  ASSERT_TRUE(other.is_met()) << other.text();
  ASSERT_EQ(dead.line(), "met");
  zero.met->start(heard);
  other.met->start(heard_by_one);
  dead.signal(SIGKILL);
  const time_point begin = steady_time().now();
  EXPECT_TRUE(heard.wait_for(2));
  EXPECT_TRUE(heard_by_one.wait_for(2));
  EXPECT_LT(steady_time().now() - begin, 100ms);
  for (int i = 0; i < 100; ++i) {
    zero.met->send(2, bytes_of("into the void"));  // no SIGPIPE
  }
}

TEST(rendezvous, a_peer_killed_inside_a_collective_step_is_named) {
  head first{2};
  child dead{rank_that_stays(first.where(), 1, 2)};
  outcome zero = first.result();
  ASSERT_EQ(dead.line(), "met");
  auto gather = std::async(std::launch::async, [&] {
    return zero.met->all_gather(bytes(std::size_t{8} << 20), deadline::after(10s));
  });
  dead.signal(SIGKILL);
  try {
    (void)gather.get();
    ADD_FAILURE();
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::peer_lost);
    EXPECT_EQ(failure.context().peers, std::vector{1});
  }
}

TEST(rendezvous, waiting_costs_little) {
  const auto busy_ms = [](const teller& tell) {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto ms = [](const timeval& t) { return (t.tv_sec * 1000) + (t.tv_usec / 1000); };
    tell(std::to_string(ms(used.ru_utime) + ms(used.ru_stime)));
  };
  // Rank 2 never comes; nobody is at the port of the third.
  child waiting_head{[&](const teller& tell) {
    (void)try_meet({.address = "127.0.0.1:0", .rank = 0, .world_size = 3}, {}, 2s, quiet());
    busy_ms(tell);
  }};
  const raw_listener nobody{raw_listener::mode::holds_port};
  child waiting_worker{[&](const teller& tell) {
    (void)try_meet({.address = nobody.where(), .rank = 1, .world_size = 3}, {}, 2s, quiet());
    busy_ms(tell);
  }};
  EXPECT_LT(std::stoi(waiting_head.line()), 200);
  EXPECT_LT(std::stoi(waiting_worker.line()), 200);
}

}  // namespace
}  // namespace spark_comm::rendezvous::testing
