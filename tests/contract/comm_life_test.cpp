// SPDX-License-Identifier: AGPL-3.0-only
// A communicator's life: joining, waiting, closing, aborting, each in every state.
#include "support/expect_error.hpp"
#include "support/log_capture.hpp"
#include "support/world.hpp"

#include <spark_comm/cuda/graph.hpp>
#include <spark_comm/spark_comm.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using test_support::expect_all_succeeded;
using test_support::host_runtime;
using test_support::in_world;
using test_support::meeting_place;
using test_support::run_rank_processes;
using test_support::test_options;
using testing::error_of;
using testing::expect_error;

void sum(communicator& comm, std::int32_t& value, cuda::stream_ref s) {
  all_reduce(comm, &value, &value, 1, data_type::int32, reduce_op::sum, s);
}

// A head that waits for a rank 1 that never comes.
communicator lonely_head(const meeting_place& place, const runtime& loaded) {
  return communicator::start_join(loaded, place.of(0, 2), test_options(place, 0));
}

// In a process of its own, because the host runtime does not live through forks.
void in_one_process(const std::function<void(const runtime&)>& body) {
  expect_all_succeeded(run_rank_processes(1, [&](int) { body(host_runtime()); }));
}

TEST(life, start_join_returns_at_once_and_poll_tells_the_end) {
  const meeting_place place;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    const runtime loaded = host_runtime();
    const world mine = place.of(rank, 2);
    const auto before = clock::now();
    communicator comm = communicator::start_join(loaded, mine, test_options(place, rank));
    EXPECT_LT(clock::now() - before, 50ms);
    EXPECT_NE(comm.state(), communicator_state::broken);
    while (comm.poll_join() == progress::pending) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(comm.state(), communicator_state::ready);
    EXPECT_EQ(comm.poll_join(), progress::done);
    EXPECT_EQ(comm.generation(), 1U);
    EXPECT_EQ(comm.name(), "test");
    comm.close(10s);
  }));
}

TEST(life, nothing_is_allowed_while_joining) {
  const meeting_place place;
  in_one_process([&](const runtime& loaded) {
    communicator comm = lonely_head(place, loaded);
    const cuda::stream s = comm.device().create_stream();
    std::int32_t one = 1;
    expect_error(
        errc::invalid_usage, "while the communicator is joining", [&] { sum(comm, one, s); });
    expect_error(errc::invalid_usage, "joining", [&] { static_cast<void>(comm.wait(s, 1s)); });
  });
}

TEST(life, an_abort_ends_a_join_at_once) {
  const meeting_place place;
  in_one_process([&](const runtime& loaded) {
    communicator comm = lonely_head(place, loaded);
    const auto before = clock::now();
    comm.abort();
    EXPECT_EQ(comm.state(), communicator_state::aborted);
    expect_error(errc::aborted, "", [&] {
      while (comm.poll_join() == progress::pending) {
        std::this_thread::sleep_for(1ms);
      }
    });
    EXPECT_LT(clock::now() - before, 1s);
    EXPECT_EQ(comm.state(), communicator_state::aborted);
  });
}

TEST(life, a_close_ends_a_join_at_once) {
  const meeting_place place;
  in_one_process([&](const runtime& loaded) {
    communicator comm = lonely_head(place, loaded);
    const auto before = clock::now();
    comm.close(5s);
    EXPECT_LT(clock::now() - before, 1s);
    EXPECT_EQ(comm.state(), communicator_state::closed);
  });
}

TEST(life, a_destructor_ends_a_join_and_leaves_no_thread) {
  const meeting_place place;
  in_one_process([&](const runtime& loaded) {
    const auto before = clock::now();
    {
      const communicator comm = lonely_head(place, loaded);
    }
    EXPECT_LT(clock::now() - before, 1s);
  });
}

TEST(life, a_join_that_misses_a_rank_times_out_and_names_it) {
  const meeting_place place;
  in_one_process([&](const runtime& loaded) {
    join_options options = test_options(place, 0);
    options.deadline = 300ms;
    const auto before = clock::now();
    const error thrown =
        error_of([&] { return communicator::join(loaded, place.of(0, 2), options); });
    EXPECT_EQ(thrown.kind(), errc::timed_out) << thrown.what();
    EXPECT_EQ(thrown.context().peers, std::vector<int>{1}) << thrown.what();
    EXPECT_EQ(thrown.context().deadline, 300ms);
    EXPECT_GE(clock::now() - before, 300ms);
    EXPECT_LT(clock::now() - before, 1300ms);
  });
}

TEST(life, wrong_places_and_options_are_refused_before_anything_starts) {
  in_one_process([&](const runtime& loaded) {
    const auto refused = [&](const world& place, const join_options& options, const char* words) {
      expect_error(errc::invalid_argument, words, [&] {
        return communicator::start_join(loaded, place, options);
      });
    };
    const join_options fine{.supervise = {}};
    refused({"127.0.0.1:0", 2, 2}, fine, "rank 2 is outside the world");
    refused({"127.0.0.1:0", -1, 2}, fine, "rank -1 is outside the world");
    refused({"127.0.0.1:0", 0, 0}, fine, "world size 0");
    refused({"127.0.0.1:0", 0, -1}, fine, "world size -1");
    join_options options = fine;
    options.deadline = 0ns;
    refused({"127.0.0.1:0", 0, 2}, options, "deadlines");
    options = fine;
    options.device = 99;
    refused({"127.0.0.1:0", 0, 2}, options, "device 99 of 8 visible");
    options = fine;
    options.supervise.heartbeat_interval = 0ns;
    refused({"127.0.0.1:0", 0, 2}, options, "");
  });
}

TEST(life, two_ranks_on_one_device_are_a_mismatch_unless_it_is_wanted) {
  for (const bool is_wanted : {false, true}) {
    const meeting_place place;
    expect_all_succeeded(run_rank_processes(2, [&](int rank) {
      const runtime loaded = host_runtime();
      join_options options = test_options(place, rank);
      options.device = 0;
      options.deadline = 1s;
      options.sharing = is_wanted ? device_sharing::allowed : device_sharing::refused;
      if (is_wanted) {
        communicator comm = communicator::join(loaded, place.of(rank, 2), options);
        comm.close(10s);
        return;
      }
      const error thrown =
          error_of([&] { return communicator::join(loaded, place.of(rank, 2), options); });
      EXPECT_EQ(thrown.kind(), errc::mismatch) << thrown.what();
    }));
  }
}

TEST(life, ranks_that_are_supervised_differently_do_not_fit) {
  const meeting_place place;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    join_options options = test_options(place, rank);
    options.deadline = 500ms;
    options.supervise.check = rank == 0 ? mismatch_check::background : mismatch_check::strict;
    const error thrown =
        error_of([&] { return communicator::join(host_runtime(), place.of(rank, 2), options); });
    EXPECT_NE(std::string{thrown.what()}.find("supervision"), std::string::npos) << thrown.what();
  }));
}

TEST(life, wait_answers_done_timed_out_or_that_it_is_capturing) {
  const test_support::shared_value<std::atomic<bool>> has_timed_out;
  in_world(2, [&](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    std::int32_t one = 1;
    EXPECT_EQ(comm.wait(s, 0ns), wait_result::done) << "an idle stream";
    if (comm.rank() == 0) {
      sum(comm, one, s);
      EXPECT_EQ(comm.wait(s, 50ms), wait_result::timed_out);
      EXPECT_EQ(comm.state(), communicator_state::ready) << "a time-out is a value";
      *has_timed_out = true;
    } else {
      while (!*has_timed_out) {
        std::this_thread::sleep_for(1ms);
      }
      sum(comm, one, s);
    }
    EXPECT_EQ(comm.wait(s, 10s), wait_result::done);
    EXPECT_EQ(one, 2);
    cuda::capture_scope capture{comm.device(), s};
    expect_error(errc::invalid_usage, "captur", [&] { static_cast<void>(comm.wait(s, 1s)); });
    static_cast<void>(capture.end());
    EXPECT_EQ(comm.state(), communicator_state::ready);
  });
}

TEST(life, a_captured_collective_replays) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    std::int32_t value = 1;
    {
      cuda::capture_scope capture{comm.device(), s};
      sum(comm, value, s);
      const cuda::graph recorded = capture.end();
      const cuda::graph_exec ready = recorded.instantiate();
      EXPECT_EQ(value, 1) << "recorded, not run";
      for (int replay = 0; replay < 4; ++replay) {
        ready.launch(s);
      }
      ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
    }
    EXPECT_EQ(value, 16);
    EXPECT_EQ(comm.sequence(), 1U);
  });
}

TEST(life, closing_twice_is_fine_and_nothing_works_afterwards) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    std::int32_t one = 1;
    sum(comm, one, s);
    comm.close(10s);  // waits for the work
    EXPECT_EQ(one, 2);
    comm.close(1ms);
    EXPECT_EQ(comm.state(), communicator_state::closed);
    EXPECT_FALSE(comm.last_error());
    expect_error(
        errc::invalid_usage, "while the communicator is closed", [&] { sum(comm, one, s); });
    expect_error(errc::invalid_usage, "closed", [&] { barrier(comm, 1s); });
    comm.abort();
    EXPECT_EQ(comm.state(), communicator_state::closed);
  });
}

TEST(life, ranks_that_close_at_different_times_do_not_lose_each_other) {
  in_world(3, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    std::int32_t one = 1;
    for (int round = 0; round < 20; ++round) {
      one = 1;
      sum(comm, one, s);
    }
    std::this_thread::sleep_for(comm.rank() * 150ms);
    EXPECT_EQ(comm.state(), communicator_state::ready);
    ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
    comm.close(10s);
    EXPECT_EQ(comm.state(), communicator_state::closed);
  });
}

TEST(life, an_operation_that_a_closed_rank_will_not_join_is_peer_lost) {
  in_world(2, [](communicator& comm) {
    if (comm.rank() == 1) {
      return;
    }
    const cuda::stream s = comm.device().create_stream();
    std::int32_t one = 1;
    sum(comm, one, s);
    const error thrown = error_of([&] { return comm.wait(s, 10s); });
    EXPECT_EQ(thrown.kind(), errc::peer_lost) << thrown.what();
    EXPECT_EQ(thrown.context().peers, std::vector<int>{1});
    EXPECT_EQ(comm.state(), communicator_state::broken);
    EXPECT_EQ(comm.last_error()->kind(), errc::peer_lost);
    comm.close(1s);
  });
}

TEST(life, after_an_abort_everything_answers_aborted) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    if (comm.rank() == 0) {
      barrier(comm, 10s);
      const auto before = clock::now();
      comm.abort();
      comm.abort();
      EXPECT_LT(clock::now() - before, 1s);
      std::int32_t one = 1;
      expect_error(errc::aborted, "", [&] { sum(comm, one, s); });
      expect_error(errc::aborted, "", [&] { static_cast<void>(comm.wait(s, 1s)); });
      expect_error(errc::aborted, "", [&] { group_scope group{comm}; });
      comm.close(1s);
      EXPECT_EQ(comm.state(), communicator_state::closed);
      return;
    }
    const error thrown = error_of([&] {
      barrier(comm, 10s);  // the abort may come before this rank has left it
      std::int32_t one = 1;
      sum(comm, one, s);
      return comm.wait(s, 10s);
    });
    EXPECT_EQ(thrown.kind(), errc::peer_lost) << thrown.what();
    EXPECT_EQ(thrown.context().peers, std::vector<int>{0}) << thrown.what();
  });
}

TEST(life, moving_keeps_the_communicator_and_empties_the_source) {
  in_world(2, [](communicator& comm) {
    communicator other = std::move(comm);
    barrier(other, 10s);
    expect_error(errc::invalid_usage, "moved from", [&] { barrier(comm, 1s); });
    comm.abort();  // nothing to abort
    comm = std::move(other);
    barrier(comm, 10s);
  });
}

TEST(life, destroying_without_close_is_reported_and_bounded) {
  const meeting_place place;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    const testing::log_capture log;
    communicator comm = test_support::join_at(place, host_runtime(log.log()), rank, 2);
    if (rank == 1) {
      const auto end = clock::now() + 10s;
      while (comm.state() == communicator_state::ready && clock::now() < end) {
        std::this_thread::sleep_for(1ms);
      }
      EXPECT_EQ(comm.last_error()->kind(), errc::peer_lost);
      return;
    }
    const cuda::stream s = comm.device().create_stream();
    static std::int32_t value = 1;
    sum(comm, value, s);
    const auto before = clock::now();
    {
      const communicator gone = std::move(comm);
    }
    EXPECT_LT(clock::now() - before, 5s);
    EXPECT_NE(log.text().find("destroyed without close"), std::string::npos) << log.text();
  }));
}

TEST(life, works_unsupervised) {
  const auto off = [](int, join_options& options) {
    options.supervise.enabled = supervision::off;
    options.operation_deadline = 100ms;
  };
  in_world(
      3,
      [](communicator& comm) {
        const cuda::stream s = comm.device().create_stream();
        std::int32_t one = 1;
        sum(comm, one, s);
        ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
        EXPECT_EQ(one, 3);
        barrier(comm, 10s);
        if (comm.rank() == 0) {
          sum(comm, one, s);
          EXPECT_EQ(comm.wait(s, 300ms), wait_result::timed_out) << "nobody else watches";
          expect_error(errc::timed_out, "close", [&] { comm.close(100ms); });
          EXPECT_EQ(comm.state(), communicator_state::aborted);
        } else {
          comm.close(10s);
        }
      },
      off);
}

TEST(life, a_barrier_waits_for_everybody) {
  in_world(3, [](communicator& comm) {
    if (comm.rank() == 2) {
      std::this_thread::sleep_for(200ms);
    }
    const auto before = clock::now();
    barrier(comm, 10s);
    if (comm.rank() != 2) {
      EXPECT_GT(clock::now() - before, 100ms);
    }
    barrier(comm, 10s);
  });
}

TEST(life, a_barrier_that_misses_a_rank_breaks_the_communicator) {
  in_world(2, [](communicator& comm) {
    barrier(comm, 10s);
    if (comm.rank() == 1) {
      std::this_thread::sleep_for(600ms);
      EXPECT_EQ(comm.state(), communicator_state::broken);
      return;
    }
    const error thrown = error_of([&] { barrier(comm, 200ms); });
    EXPECT_EQ(thrown.kind(), errc::timed_out) << thrown.what();
    EXPECT_EQ(comm.state(), communicator_state::broken);
  });
}

}  // namespace
}  // namespace spark_comm
