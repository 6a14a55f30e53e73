// SPDX-License-Identifier: AGPL-3.0-only
// Ends that are not in order: close with work outstanding, abort under a waiting thread, a process
// that ends with live communicators. Nothing hangs and nothing is left.
#include "support/expect_error.hpp"
#include "support/process_state.hpp"
#include "support/world.hpp"

#include <spark_comm/cuda/graph.hpp>
#include <spark_comm/spark_comm.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using test_support::expect_all_succeeded;
using test_support::in_world;
using test_support::meeting_place;
using test_support::run_rank_processes;
using testing::error_of;

void sum(communicator& comm, std::int32_t& value, cuda::stream_ref s) {
  all_reduce(comm, &value, &value, 1, data_type::int32, reduce_op::sum, s);
}

// The rank whose part is never done: stays until the others have ended.
void stand_by(communicator& comm) {
  const auto end = clock::now() + 10s;
  while (comm.state() == communicator_state::ready && clock::now() < end) {
    std::this_thread::sleep_for(1ms);
  }
}

TEST(close, with_work_that_a_peer_never_joins_times_out_and_aborts) {
  in_world(2, [](communicator& comm) {
    if (comm.rank() == 1) {
      stand_by(comm);
      return;
    }
    const cuda::stream s = comm.device().create_stream();
    std::int32_t one = 1;
    sum(comm, one, s);
    const auto before = clock::now();
    const error thrown = error_of([&] { comm.close(500ms); });
    EXPECT_EQ(thrown.kind(), errc::timed_out) << thrown.what();
    EXPECT_EQ(thrown.context().operation, "close");
    EXPECT_GE(clock::now() - before, 500ms);
    EXPECT_LT(clock::now() - before, 1500ms);
    EXPECT_EQ(comm.state(), communicator_state::aborted);
  });
}

TEST(close, waits_for_unrelated_work_on_the_stream_no_longer_than_told) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    std::int32_t one = 1;
    s.launch_host([](void*) { std::this_thread::sleep_for(600ms); }, nullptr);
    sum(comm, one, s);
    const auto before = clock::now();
    if (comm.rank() == 0) {
      comm.close(5s);
      EXPECT_GE(clock::now() - before, 500ms);
      EXPECT_EQ(comm.state(), communicator_state::closed);
    } else {
      comm.close(5s);
    }
  });
}

TEST(close, with_a_live_graph_ends_in_a_time_out) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    std::int32_t one = 1;
    std::optional<cuda::graph_exec> ready;
    {
      cuda::capture_scope capture{comm.device(), s};
      sum(comm, one, s);
      ready = capture.end().instantiate();
    }
    ready->launch(s);
    ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
    const auto before = clock::now();
    const error thrown = error_of([&] { comm.close(300ms); });
    EXPECT_EQ(thrown.kind(), errc::timed_out) << thrown.what();
    EXPECT_LT(clock::now() - before, 1500ms);
    EXPECT_EQ(comm.state(), communicator_state::aborted);
  });
}

TEST(destructor, returns_when_the_peer_left_without_a_word) {
  const meeting_place place;
  const test_support::shared_value<std::atomic<bool>> is_peer_leaving;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    std::optional<communicator> comm =
        test_support::join_at(place, test_support::host_runtime(), rank, 2);
    if (rank == 1) {
      *is_peer_leaving = true;
      ::_exit(0);  // without destructors
    }
    while (!*is_peer_leaving) {
      std::this_thread::sleep_for(1ms);
    }
    const auto before = clock::now();
    comm.reset();
    EXPECT_LT(clock::now() - before, 5s);
  }));
}

TEST(abort, frees_a_thread_that_waits) {
  in_world(2, [](communicator& comm) {
    if (comm.rank() == 1) {
      stand_by(comm);
      return;
    }
    const cuda::stream s = comm.device().create_stream();
    std::int32_t one = 1;
    sum(comm, one, s);
    std::atomic<clock::time_point> aborted_at{clock::time_point{}};
    std::thread aborter{[&] {
      std::this_thread::sleep_for(200ms);
      aborted_at = clock::now();
      comm.abort();
      EXPECT_LT(clock::now() - aborted_at.load(), 2s);
    }};
    const auto cpu = test_support::cpu_time();
    const error thrown = error_of([&] { return comm.wait(s, 30s); });
    EXPECT_EQ(thrown.kind(), errc::aborted) << thrown.what();
    EXPECT_LT(clock::now() - aborted_at.load(), 1s);
    EXPECT_LT(test_support::cpu_time() - cpu, 100ms);
    aborter.join();
    EXPECT_EQ(comm.state(), communicator_state::aborted);
  });
}

TEST(abort, by_two_threads_is_one_abort) {
  in_world(2, [](communicator& comm) {
    if (comm.rank() == 1) {
      stand_by(comm);
      return;
    }
    const cuda::stream s = comm.device().create_stream();
    std::int32_t one = 1;
    sum(comm, one, s);
    std::thread second{[&] { comm.abort(); }};
    comm.abort();
    second.join();
    EXPECT_EQ(comm.state(), communicator_state::aborted);
  });
}

TEST(abort, of_two_stuck_communicators_works_in_either_order) {
  for (const bool is_first_first : {true, false}) {
    const meeting_place one;
    const meeting_place two;
    expect_all_succeeded(run_rank_processes(2, [&](int rank) {
      const runtime loaded = test_support::host_runtime();
      communicator a = test_support::join_at(one, loaded, rank, 2);
      communicator b = test_support::join_at(two, loaded, rank, 2);
      if (rank == 1) {
        stand_by(a);
        stand_by(b);
        return;
      }
      const cuda::stream s = a.device().create_stream();
      const cuda::stream t = b.device().create_stream();
      std::int32_t x = 1;
      std::int32_t y = 1;
      sum(a, x, s);
      sum(b, y, t);
      const auto before = clock::now();
      (is_first_first ? a : b).abort();
      (is_first_first ? b : a).abort();
      EXPECT_LT(clock::now() - before, 2s);
    }));
  }
}

// At any moment of the operation's life, under a waiting or an issuing thread.
TEST(abort, two_hundred_times_at_random_moments) {
  constexpr std::uint32_t seed = 42;
  constexpr int rounds = 40;
  constexpr int aborts_a_round = 5;
  std::mt19937 random{seed};
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    std::array<std::chrono::microseconds, aborts_a_round> delays{};
    for (auto& delay : delays) {
      delay = std::chrono::microseconds{random() % 3000};
    }
    std::array<meeting_place, aborts_a_round> places;
    expect_all_succeeded(run_rank_processes(2, [&](int rank) {
      const runtime loaded = test_support::host_runtime();
      for (std::size_t i = 0; i < delays.size(); ++i) {
        communicator comm = test_support::join_at(places[i], loaded, rank, 2);
        const cuda::stream s = comm.device().create_stream();
        std::int32_t value = 1;
        std::thread aborter;
        const error thrown = error_of([&] {
          barrier(comm, 10s);  // or the abort may meet a peer that is still joining
          if (rank == 0) {
            aborter = std::thread{[&, i] {
              std::this_thread::sleep_for(delays[i]);
              comm.abort();
            }};
          }
          while (true) {
            sum(comm, value, s);
            static_cast<void>(comm.wait(s, 30s));
          }
        });
        EXPECT_EQ(thrown.kind(), rank == 0 ? errc::aborted : errc::peer_lost) << thrown.what();
        if (aborter.joinable()) {
          aborter.join();
        }
      }
    }));
  }
}

TEST(life, leaves_no_descriptor_and_no_thread) {
  const meeting_place warm;
  std::array<meeting_place, 3> places;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    const runtime loaded = test_support::host_runtime();
    const cuda::stream s = cuda::device::open(loaded.driver(), rank).create_stream();
    {
      communicator comm = test_support::join_at(warm, loaded, rank, 2);
      std::int32_t one = 1;
      sum(comm, one, s);
      EXPECT_EQ(comm.wait(s, 10s), wait_result::done);
      comm.close(10s);
    }
    const std::size_t descriptors = test_support::open_descriptors();
    const std::size_t threads = test_support::live_threads();
    for (std::size_t i = 0; i < places.size(); ++i) {
      communicator comm = test_support::join_at(places[i], loaded, rank, 2);
      std::int32_t one = 1;
      if (i == 1) {  // aborted by both, at whatever point the other is
        try {
          sum(comm, one, s);
        } catch (const error& told) {
          EXPECT_EQ(told.kind(), errc::peer_lost) << told.what();
        }
        comm.abort();
        continue;
      }
      sum(comm, one, s);
      EXPECT_EQ(comm.wait(s, 10s), wait_result::done);
      comm.close(10s);
    }
    const auto end = clock::now() + 2s;
    while ((test_support::open_descriptors() > descriptors ||
            test_support::live_threads() > threads) &&
           clock::now() < end) {
      std::this_thread::sleep_for(1ms);  // a thread leaves the list a moment after it was joined
    }
    EXPECT_EQ(test_support::open_descriptors(), descriptors);
    EXPECT_EQ(test_support::live_threads(), threads);
  }));
}

// Runs `end` in a process of its own with a live communicator and pending work; its exit code.
int exit_code_of(const meeting_place& place, int rank, void (*end)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    // Lives on until the process ends, by whatever way; so do stream and memory.
    static std::unique_ptr<communicator> comm;
    static std::unique_ptr<cuda::stream> stream;
    static std::int32_t value = 1;
    comm = std::make_unique<communicator>(
        test_support::join_at(place, test_support::host_runtime(), rank, 2));
    stream = std::make_unique<cuda::stream>(comm->device().create_stream());
    barrier(*comm, 10s);
    sum(*comm, value, *stream);
    end();
    std::_Exit(99);
  }
  int status = 0;
  static_cast<void>(::waitpid(child, &status, 0));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(process_end, gives_the_exit_code_asked_for) {
  struct way {
    const char* name;
    void (*end)();
    int code;
  };

  const way ways[] = {
      {"exit", [] { std::exit(3); }, 3},  // NOLINT(concurrency-mt-unsafe): what is tested
      {"exit in a second thread",
       [] {
         std::thread{[] { std::exit(4); }}.join();  // NOLINT(concurrency-mt-unsafe)
       },
       4},
      {"quick_exit", [] { std::quick_exit(5); }, 5},
  };
  for (const way& each : ways) {
    const meeting_place place;
    expect_all_succeeded(run_rank_processes(2, [&](int rank) {
      if (rank == 0) {
        const auto before = clock::now();
        EXPECT_EQ(exit_code_of(place, 0, each.end), each.code) << each.name;
        EXPECT_LT(clock::now() - before, 5s) << each.name;
        return;
      }
      communicator comm = test_support::join_at(place, test_support::host_runtime(), 1, 2);
      try {
        barrier(comm, 10s);
        stand_by(comm);
      } catch (const error&) {
        EXPECT_EQ(comm.state(), communicator_state::broken);  // it left the barrier, and was gone
      }
      ASSERT_TRUE(comm.last_error()) << each.name;
      EXPECT_EQ(comm.last_error()->kind(), errc::peer_lost) << comm.last_error()->what();
    }));
  }
}

}  // namespace
}  // namespace spark_comm
