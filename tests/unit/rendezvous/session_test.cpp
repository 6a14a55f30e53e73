// SPDX-License-Identifier: AGPL-3.0-only
#include "unit/rendezvous/ranks.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace spark_comm::rendezvous::testing {
namespace {

using ::testing::HasSubstr;
using sessions = std::vector<std::unique_ptr<session>>;

/// Keeps what a session says, and waits for it.
class recorder final : public session_listener {
 public:
  void on_message(int peer, std::span<const std::byte> message) noexcept override {
    const std::scoped_lock lock{mutex_};
    messages_[peer].push_back(text_of(message));
    changed_.notify_all();
  }

  void on_closed(int peer, const std::string& reason) noexcept override {
    const std::scoped_lock lock{mutex_};
    closed_[peer].push_back(reason);
    changed_.notify_all();
  }

  std::vector<std::string> messages_from(int peer, std::size_t count) {
    return wait_for(messages_, peer, count);
  }

  std::vector<std::string> closures_of(int peer) { return wait_for(closed_, peer, 1); }

  std::size_t closures() {
    const std::scoped_lock lock{mutex_};
    return closed_.size();
  }

 private:
  std::vector<std::string> wait_for(std::map<int, std::vector<std::string>>& of,
                                    int peer,
                                    std::size_t count) {
    std::unique_lock lock{mutex_};
    changed_.wait_for(lock, 5s, [&] { return of[peer].size() >= count; });
    return of[peer];
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::vector<std::string>> messages_;
  std::map<int, std::vector<std::string>> closed_;
};

/// Runs one call on all ranks at once; the answers in rank order.
template <typename Call>
auto on_all(const sessions& all, Call call) {
  using answer = decltype(call(*all.front()));
  std::vector<std::future<answer>> running;
  for (const auto& each : all) {
    running.push_back(std::async(std::launch::async, [&each, &call] { return call(*each); }));
  }
  std::vector<answer> out;
  for (auto& each : running) {
    out.push_back(each.get());
  }
  return out;
}

TEST(session, all_gather_gives_everybodys_bytes_in_rank_order) {
  const auto all = meet_all(4);
  for (int round = 0; round < 3; ++round) {
    const auto answers = on_all(all, [](session& mine) {
      return mine.all_gather(bytes_of("from " + std::to_string(mine.rank())), deadline::after(5s));
    });
    for (const auto& parts : answers) {
      ASSERT_EQ(parts.size(), 4U);
      EXPECT_EQ(text_of(parts[0]), "from 0");
      EXPECT_EQ(text_of(parts[3]), "from 3");
    }
  }
}

TEST(session, all_gather_carries_nothing_and_megabytes) {
  const auto all = meet_all(3);
  const auto answers = on_all(all, [](session& mine) {
    const bytes part(mine.rank() == 0 ? 0 : std::size_t{3} << 20, std::byte{7});
    return mine.all_gather(part, deadline::after(20s));
  });
  for (const auto& parts : answers) {
    EXPECT_TRUE(parts[0].empty());
    EXPECT_EQ(parts[2], bytes(std::size_t{3} << 20, std::byte{7}));
  }
}

TEST(session, broadcast_carries_every_byte_value) {
  const auto all = meet_all(3);
  bytes id(128, std::byte{0});
  id[5] = std::byte{255};
  const auto answers = on_all(all, [&id](session& mine) {
    return mine.broadcast(mine.rank() == 0 ? id : bytes_of("ignored"), deadline::after(5s));
  });
  for (const bytes& each : answers) {
    EXPECT_EQ(each, id);
  }
}

TEST(session, a_rank_that_does_not_send_is_named) {
  const auto all = meet_all(3);
  auto one = std::async(std::launch::async,
                        [&] { return all[1]->all_gather(bytes_of("x"), deadline::after(400ms)); });
  try {
    (void)all[0]->all_gather(bytes_of("x"), deadline::after(200ms));
    ADD_FAILURE();
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::timed_out) << failure.what();
    EXPECT_EQ(failure.context().peers, std::vector{2}) << failure.what();
  }
  EXPECT_THROW((void)one.get(), error);
  EXPECT_THROW((void)all[0]->broadcast({}, deadline::after(1s)), error);
}

TEST(session, a_lost_peer_is_named) {
  auto all = meet_all(3);
  all[1].reset();
  for (const int rank : {0, 2}) {
    try {
      (void)all[static_cast<std::size_t>(rank)]->all_gather({}, deadline::after(5s));
      ADD_FAILURE();
    } catch (const error& failure) {
      EXPECT_EQ(failure.kind(), errc::peer_lost) << failure.what();
    }
  }
}

TEST(session, ranks_at_different_steps_are_told_so) {
  const auto all = meet_all(2);
  auto one =
      std::async(std::launch::async, [&] { return all[1]->broadcast({}, deadline::after(5s)); });
  EXPECT_THROW((void)all[0]->all_gather({}, deadline::after(5s)), error);
  try {
    (void)one.get();
    ADD_FAILURE();
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::mismatch) << failure.what();
  }
}

TEST(session, messages_arrive_in_order_from_every_peer) {
  std::vector<recorder> heard(3);
  auto all = meet_all(3);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    all[rank]->start(heard[rank]);
  }
  for (int i = 0; i < 100; ++i) {
    all[1]->send(0, bytes_of(std::to_string(i)));
    all[2]->send(0, bytes_of(std::to_string(i)));
  }
  for (const int peer : {1, 2}) {
    const auto messages = heard[0].messages_from(peer, 100);
    ASSERT_EQ(messages.size(), 100U);
    EXPECT_EQ(messages.front(), "0");
    EXPECT_EQ(messages.back(), "99");
  }
}

TEST(session, a_peer_that_ends_is_reported_once_and_soon) {
  std::vector<recorder> heard(3);
  auto all = meet_all(3);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    all[rank]->start(heard[rank]);
  }
  all[1]->send(0, bytes_of("last words"));
  all[1]->stop();
  for (const std::size_t rank : {0U, 2U}) {
    const time_point begin = steady_time().now();
    EXPECT_EQ(heard[rank].closures_of(1), std::vector<std::string>{"the peer ended its session"});
    EXPECT_LT(steady_time().now() - begin, 1s);
  }
  EXPECT_EQ(heard[0].messages_from(1, 1), std::vector<std::string>{"last words"});
  all[0]->send(1, bytes_of("to nobody"));
}

TEST(session, stop_is_idempotent_and_silences_the_listener) {
  recorder heard;
  auto all = meet_all(2);
  all[0]->start(heard);
  all[0]->stop();
  all[0]->stop();
  all[1]->stop();
  EXPECT_EQ(heard.closures(), 0U);
  all[0]->send(1, bytes_of("after"));
  EXPECT_THROW((void)all[0]->all_gather({}, deadline::after(1s)), error);
}

/// Stops the session from inside its own thread.
class stopper final : public session_listener {
 public:
  void on_message(int /*peer*/, std::span<const std::byte> /*message*/) noexcept override {
    own->stop();
    stopped.set_value();
  }

  void on_closed(int /*peer*/, const std::string& /*reason*/) noexcept override { ++closures; }

  session* own = nullptr;
  std::promise<void> stopped;
  int closures = 0;
};

TEST(session, may_be_stopped_by_its_own_listener) {
  stopper listener;
  recorder heard;
  auto all = meet_all(2);
  listener.own = all[0].get();
  all[0]->start(listener);
  all[1]->start(heard);
  all[1]->send(0, bytes_of("stop"));
  listener.stopped.get_future().get();
  EXPECT_EQ(heard.closures_of(0).size(), 1U);
  all[0].reset();
  EXPECT_EQ(listener.closures, 0);
}

TEST(session, a_message_too_large_is_reported_and_harms_nobody) {
  recorder heard;
  recorder silent;
  auto all = meet_all(2);
  all[0]->start(silent);
  all[1]->start(heard);
  all[0]->send(1, bytes(std::size_t{17} << 20));
  all[0]->send(1, bytes_of("next"));
  EXPECT_EQ(heard.messages_from(0, 1), std::vector<std::string>{"next"});
}

}  // namespace
}  // namespace spark_comm::rendezvous::testing
