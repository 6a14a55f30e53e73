// SPDX-License-Identifier: AGPL-3.0-only
// A rank is killed while the others serve: they reconnect, with a new process in its place or
// alone, and go on with the memory that they have.
#include "support/process_state.hpp"
#include "support/world.hpp"

#include <spark_comm/spark_comm.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using rendezvous::entry;
using rendezvous::membership;
using test_support::meeting_place;
using test_support::run_rank_processes;
using test_support::shared_value;

// Within a second, also where other tests have the machine busy; how long it took is printed.
constexpr double limit_ms = 1000;
constexpr std::size_t count = 4096;

struct notes {
  std::atomic<int> serving{0};
  std::atomic<std::int64_t> died_at{0};
  std::atomic<std::int64_t> back_at{0};
};

std::int64_t now_ns() {
  return std::chrono::nanoseconds{clock::now().time_since_epoch()}.count();
}

void wait_until(const std::function<bool()>& is_so) {
  const auto end = clock::now() + 20s;
  while (!is_so()) {
    ASSERT_LT(clock::now(), end) << "it never came";
    std::this_thread::sleep_for(200us);
  }
}

[[noreturn]] void die() {
  static_cast<void>(::kill(::getpid(), SIGKILL));
  std::abort();
}

/// One step of serving: every rank's number is reduced, in memory that is kept.
class server {
 public:
  explicit server(communicator& comm)
      : comm_(&comm),
        stream_(comm.device().create_stream()),
        memory_(cuda::device_buffer::allocate(comm.device(), count * sizeof(float))),
        registered_(comm.register_buffer(memory_)) {}

  [[nodiscard]] const registration& registered() const { return registered_; }

  /// The sum that came out, the same in every element.
  float step() {
    auto* data = memory_.as<float>().address;  // the host runtime's device memory is the host's
    std::fill_n(data, count, static_cast<float>(comm_->rank() + 1));
    all_reduce(*comm_, memory_.as<float>(), reduce_op::sum, stream_);
    EXPECT_EQ(comm_->wait(stream_, 10s), wait_result::done);
    EXPECT_TRUE(std::ranges::all_of(std::span{data, count}, [&](float x) { return x == *data; }));
    return *data;
  }

  /// Until something fails; what.
  std::optional<error> serve(float right, const std::function<void(int)>& after_step = {}) {
    const auto end = clock::now() + 20s;
    for (int done = 1; clock::now() < end; ++done) {
      try {
        EXPECT_EQ(step(), right);
      } catch (const error& failure) {
        return failure;
      }
      if (after_step) {
        after_step(done);
      }
    }
    return std::nullopt;
  }

 private:
  communicator* comm_;
  cuda::stream stream_;
  cuda::device_buffer memory_;
  registration registered_;
};

join_options replacing(const meeting_place& place, int rank) {
  join_options options = test_support::test_options(place, rank);
  options.on_listening = {};
  options.way_in = entry::replacing;
  return options;
}

float sum_of(int world) {
  return static_cast<float>(world * (world + 1) / 2);
}

/// The world that a new process joins: the place of the lost rank, at the address of the first
/// meeting.
world place_of_lost(const meeting_place& place, int rank, int size) {
  world where = place.of(1, size);
  where.rank = rank;
  return where;
}

class replaced_rank : public ::testing::TestWithParam<int> {};

TEST_P(replaced_rank, leaves_the_survivor_its_object_its_memory_and_its_registrations) {
  constexpr int rounds = 20;
  const int victim = GetParam();
  std::vector<double> took_ms;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const meeting_place place;
    const shared_value<notes> shared;
    // Process 2 comes in the victim's place.
    const auto outcomes = run_rank_processes(3, [&](int process) {
      const runtime loaded = test_support::host_runtime();
      if (process == 2) {
        wait_until([&] { return shared->died_at != 0; });
        communicator comm =
            communicator::join(loaded, place_of_lost(place, victim, 2), replacing(place, victim));
        EXPECT_EQ(comm.generation(), 2U);
        server mine{comm};
        EXPECT_EQ(mine.step(), sum_of(2));
        comm.close(5s);
        return;
      }
      communicator comm = communicator::join(
          loaded, place.of(process, 2), test_support::test_options(place, process));
      server mine{comm};
      if (process == victim) {
        static_cast<void>(mine.serve(sum_of(2), [&](int done) {
          if (done == 20) {
            shared->died_at = now_ns();
            die();
          }
        }));
      }
      const auto failure = mine.serve(sum_of(2));
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->kind(), errc::peer_lost) << failure->what();
      EXPECT_FALSE(mine.registered().is_effective());
      comm.reconnect(10s);
      shared->back_at = now_ns();
      EXPECT_EQ(comm.state(), communicator_state::ready);
      EXPECT_EQ(comm.generation(), 2U);
      EXPECT_EQ(comm.sequence(), 0U);
      EXPECT_EQ(comm.rank(), 1 - victim);
      EXPECT_TRUE(mine.registered().is_effective());
      EXPECT_EQ(mine.step(), sum_of(2));
      comm.close(5s);
    });
    for (int process = 0; process < 3; ++process) {
      EXPECT_EQ(outcomes[static_cast<std::size_t>(process)],
                process == victim ? "ended by signal 9\n" : "")
          << "process " << process;
    }
    took_ms.push_back(static_cast<double>(shared->back_at - shared->died_at) / 1e6);
  }
  std::ranges::sort(took_ms);
  std::printf(
      "from the death of rank %d to the survivor's being ready: median %.1f ms, slowest %.1f ms\n",
      victim,
      took_ms[took_ms.size() / 2],
      took_ms.back());
  EXPECT_LT(took_ms.back(), limit_ms);
}

INSTANTIATE_TEST_SUITE_P(of_two, replaced_rank, ::testing::Values(1, 0), [](const auto& each) {
  return each.param == 0 ? "head" : "worker";
});

TEST(survivors, go_on_alone_whichever_rank_dies) {
  for (const int victim : {0, 1, 2}) {
    SCOPED_TRACE(victim);
    const meeting_place place;
    const auto outcomes = run_rank_processes(3, [&](int rank) {
      communicator comm = test_support::join_at(place, test_support::host_runtime(), rank, 3);
      server mine{comm};
      if (rank == victim) {
        EXPECT_EQ(mine.step(), sum_of(3));
        die();
      }
      const auto failure = mine.serve(sum_of(3));
      ASSERT_TRUE(failure);
      comm.reconnect({.deadline = 10s, .who = membership::survivors});
      EXPECT_EQ(comm.world_size(), 2);
      EXPECT_EQ(comm.rank(), rank > victim ? rank - 1 : rank);
      EXPECT_EQ(comm.generation(), 2U);
      EXPECT_EQ(mine.step(), sum_of(2));
      EXPECT_TRUE(mine.registered().is_effective());
      comm.close(5s);
    });
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(outcomes[static_cast<std::size_t>(rank)],
                rank == victim ? "ended by signal 9\n" : "")
          << "rank " << rank;
    }
  }
}

TEST(survivors, down_to_one_that_is_a_world_of_its_own) {
  const meeting_place place;
  const auto outcomes = run_rank_processes(2, [&](int rank) {
    communicator comm = test_support::join_at(place, test_support::host_runtime(), rank, 2);
    server mine{comm};
    if (rank == 0) {
      EXPECT_EQ(mine.step(), sum_of(2));
      die();
    }
    ASSERT_TRUE(mine.serve(sum_of(2)));
    comm.reconnect({.deadline = 10s, .who = membership::survivors});
    EXPECT_EQ(comm.world_size(), 1);
    EXPECT_EQ(comm.rank(), 0);
    EXPECT_EQ(mine.step(), 1.0F);
    comm.reconnect(5s);
    EXPECT_EQ(comm.generation(), 3U);
    EXPECT_EQ(mine.step(), 1.0F);
    comm.close(5s);
  });
  EXPECT_EQ(outcomes[0], "ended by signal 9\n");
  EXPECT_EQ(outcomes[1], "");
}

TEST(reconnect, many_times_in_one_process_leaves_nothing_behind) {
  constexpr int times = 50;
  constexpr int warm_up = 3;
  test_support::in_world(2, [](communicator& comm) {
    server mine{comm};
    std::size_t descriptors = 0;
    std::size_t threads = 0;
    std::size_t mappings = 0;
    for (int round = 1; round <= times; ++round) {
      if (comm.rank() == round % 2) {
        EXPECT_EQ(mine.step(), sum_of(2));
        comm.abort();
      } else {
        ASSERT_TRUE(mine.serve(sum_of(2)));
      }
      comm.reconnect(10s);
      ASSERT_EQ(comm.generation(), static_cast<std::uint64_t>(round) + 1);
      ASSERT_EQ(comm.sequence(), 0U);
      if (round == warm_up) {
        descriptors = test_support::open_descriptors();
        threads = test_support::live_threads();
        mappings = test_support::memory_mappings();
      }
    }
    EXPECT_EQ(mine.step(), sum_of(2));
    EXPECT_EQ(test_support::open_descriptors(), descriptors);
    EXPECT_EQ(test_support::live_threads(), threads);
    EXPECT_LE(test_support::memory_mappings(), mappings + 4) << "the heap may grow by a few";
  });
}

TEST(reconnect, without_the_other_rank_ends_at_the_deadline_and_may_be_tried_again) {
  const meeting_place place;
  const shared_value<notes> shared;
  const auto outcomes = run_rank_processes(3, [&](int process) {
    const runtime loaded = test_support::host_runtime();
    if (process == 2) {
      wait_until([&] { return shared->died_at != 0; });
      communicator comm =
          communicator::join(loaded, place_of_lost(place, 0, 2), replacing(place, 0));
      server mine{comm};
      EXPECT_EQ(mine.step(), sum_of(2));
      comm.close(5s);
      return;
    }
    communicator comm = test_support::join_at(place, loaded, process, 2);
    server mine{comm};
    if (process == 0) {
      EXPECT_EQ(mine.step(), sum_of(2));
      die();
    }
    ASSERT_TRUE(mine.serve(sum_of(2)));
    const auto begin = clock::now();
    try {
      comm.reconnect(600ms);
      ADD_FAILURE() << "nobody was there";
    } catch (const error& failure) {
      EXPECT_EQ(failure.kind(), errc::timed_out) << failure.what();
      EXPECT_EQ(failure.context().peers, std::vector{0}) << failure.what();
    }
    EXPECT_GE(clock::now() - begin, 600ms);
    EXPECT_LT(clock::now() - begin, 2s);
    EXPECT_EQ(comm.state(), communicator_state::broken);
    EXPECT_EQ(comm.last_error().value().kind(), errc::timed_out);
    EXPECT_THROW(static_cast<void>(mine.step()), error);
    shared->died_at = now_ns();
    comm.reconnect(10s);
    EXPECT_EQ(mine.step(), sum_of(2));
    comm.close(5s);
  });
  EXPECT_EQ(outcomes, (std::vector<std::string>{"ended by signal 9\n", "", ""}));
}

// Rank 1 has stood aside for so long that another process has its place.
TEST(reconnect, a_rank_that_comes_late_is_told_the_present_generation) {
  const meeting_place place;
  const shared_value<notes> shared;
  const auto outcomes = run_rank_processes(3, [&](int process) {
    const runtime loaded = test_support::host_runtime();
    if (process == 2) {
      wait_until([&] { return shared->died_at != 0; });
      communicator comm =
          communicator::join(loaded, place_of_lost(place, 1, 2), replacing(place, 1));
      server mine{comm};
      EXPECT_EQ(mine.step(), sum_of(2));
      ++shared->serving;
      wait_until([&] { return shared->serving == 3; });
      EXPECT_EQ(mine.step(), sum_of(2));
      comm.close(5s);
      return;
    }
    communicator comm = test_support::join_at(place, loaded, process, 2);
    server mine{comm};
    if (process == 1) {
      EXPECT_EQ(mine.step(), sum_of(2));
      comm.abort();
      shared->died_at = now_ns();
      wait_until([&] { return shared->serving == 2; });
      try {
        comm.reconnect(500ms);
        ADD_FAILURE() << "its place is taken";
      } catch (const error& failure) {
        EXPECT_EQ(failure.kind(), errc::timed_out) << failure.what();
        EXPECT_THAT(failure.what(), ::testing::HasSubstr("rank 0 is in generation 2"));
      }
      ++shared->serving;
      return;
    }
    ASSERT_TRUE(mine.serve(sum_of(2)));
    comm.reconnect(10s);
    EXPECT_EQ(mine.step(), sum_of(2));
    ++shared->serving;
    wait_until([&] { return shared->serving == 3; });
    EXPECT_EQ(mine.step(), sum_of(2)) << "the one that came late has changed nothing";
    comm.close(5s);
  });
  test_support::expect_all_succeeded(outcomes);
}

TEST(reconnect, is_refused_while_closed_and_after_it_nothing_changes) {
  test_support::in_world(1, [](communicator& comm) {
    comm.close(1s);
    try {
      comm.reconnect(1s);
      ADD_FAILURE() << "it is closed";
    } catch (const error& failure) {
      EXPECT_EQ(failure.kind(), errc::invalid_usage) << failure.what();
    }
    EXPECT_EQ(comm.state(), communicator_state::closed);
  });
}

TEST(reconnect, of_a_ready_rank_makes_the_others_follow) {
  test_support::in_world(3, [](communicator& comm) {
    server mine{comm};
    if (comm.rank() == 1) {
      EXPECT_EQ(mine.step(), sum_of(3));
    } else {
      ASSERT_TRUE(mine.serve(sum_of(3)));
    }
    comm.reconnect(10s);
    EXPECT_EQ(comm.generation(), 2U);
    EXPECT_EQ(mine.step(), sum_of(3));
  });
}

}  // namespace
}  // namespace spark_comm
