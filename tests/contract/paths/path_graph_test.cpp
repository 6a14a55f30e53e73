// SPDX-License-Identifier: AGPL-3.0-only
// Paths beyond one call after the other: many rounds with ranks at different speeds, graphs that
// are replayed, and all-reduces beside a computation.
#include "path_world.hpp"

#include <spark_comm/collectives/all_reduce.hpp>
#include <spark_comm/collectives/all_reduce_overlapped.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/cuda/graph.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/supervise/communicator_state.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace spark_comm::test_support {
namespace {

using namespace std::chrono_literals;
using enum path_kind;

constexpr std::size_t count = 65;

path_options paths_by(path_kind path) {
  path_options options;
  options.table = table_of(path);
  options.max_bytes = 4096;
  return options;
}

struct path_case {
  path_kind path;
  int world_size;
};

class path_rounds_on : public testing::TestWithParam<path_case> {};

INSTANTIATE_TEST_SUITE_P(paths,
                         path_rounds_on,
                         testing::Values(path_case{exchange, 2},
                                         path_case{one_shot, 2},
                                         path_case{two_shot, 2},
                                         path_case{low_latency, 2},
                                         path_case{one_shot, 4},
                                         path_case{two_shot, 4},
                                         path_case{low_latency, 4}),
                         [](const auto& each) {
                           return std::string{name_of(each.param.path)} + "_" +
                                  std::to_string(each.param.world_size);
                         });

TEST_P(path_rounds_on, are_right_with_new_data_and_random_delays_each_time) {
  constexpr int rounds = 300;
  expect_all_succeeded(
      run_paths(GetParam().world_size, paths_by(GetParam().path), [&](communicator& comm) {
        const cuda::stream s = comm.device().create_stream();
        const device_elements<bfloat16> x{comm, count};
        std::minstd_rand random{static_cast<unsigned>(comm.rank()) + 1U};
        for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
          x.write(message<bfloat16>(comm.rank(), count, round), s);
          std::this_thread::sleep_for(std::chrono::microseconds{random() % 200U});
          all_reduce(comm, x.span(), reduce_op::sum, s);
          ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
          EXPECT_TRUE(same_bits(x.read(s), sum_of_ranks<bfloat16>(comm.world_size(), count, round)))
              << "round " << round;
        }
      }));
}

TEST_P(path_rounds_on, a_graph_is_replayed_with_new_data) {
  constexpr int replays = 200;
  expect_all_succeeded(
      run_paths(GetParam().world_size, paths_by(GetParam().path), [&](communicator& comm) {
        const cuda::stream s = comm.device().create_stream();
        std::vector<device_elements<float>> messages;
        for (int i = 0; i < 3; ++i) {
          messages.emplace_back(comm, count);
        }
        cuda::capture_scope capture{comm.device(), s};
        for (const auto& each : messages) {
          all_reduce(comm, each.span(), reduce_op::sum, s);
        }
        const cuda::graph recorded = capture.end();
        const cuda::graph_exec graph = recorded.instantiate();
        for (int replay = 0; replay < replays && !testing::Test::HasFailure(); ++replay) {
          for (int i = 0; i < 3; ++i) {
            messages[static_cast<std::size_t>(i)].write(
                message<float>(comm.rank(), count, 3 * replay + i), s);
          }
          graph.launch(s);
          ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
          for (int i = 0; i < 3; ++i) {
            EXPECT_TRUE(same_bits(messages[static_cast<std::size_t>(i)].read(s),
                                  sum_of_ranks<float>(comm.world_size(), count, 3 * replay + i)))
                << "replay " << replay << ", message " << i;
          }
        }
      }));
}

// Runs an all-reduce from a graph, then lets rank 1 stay away from a run. The graph is gone before
// the abort, which would wait for it.
void expect_that_a_hanging_run_is_named(communicator& comm) {
  const cuda::stream s = comm.device().create_stream();
  const device_elements<float> x{comm, count};
  cuda::capture_scope capture{comm.device(), s};
  all_reduce(comm, x.span(), reduce_op::sum, s);
  const cuda::graph recorded = capture.end();
  const cuda::graph_exec graph = recorded.instantiate();
  for (int replay = 0; replay < 3; ++replay) {
    x.write(message<float>(comm.rank(), count, replay), s);
    graph.launch(s);
    ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
    EXPECT_TRUE(same_bits(x.read(s), sum_of_ranks<float>(2, count, replay)));
  }
  std::this_thread::sleep_for(700ms);  // longer than a run may take
  EXPECT_EQ(comm.state(), communicator_state::ready);
  if (comm.rank() == 1) {
    return;
  }
  graph.launch(s);
  const auto began = std::chrono::steady_clock::now();
  try {
    static_cast<void>(comm.wait(s, 10s));
    ADD_FAILURE() << "the run has ended without rank 1";
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::timed_out) << failure.what();
    EXPECT_EQ(failure.context().peers, std::vector{1}) << failure.what();
    EXPECT_NE(failure.message().find("in a graph"), std::string::npos) << failure.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3s);
}

TEST(graph_of_nccl, a_replay_that_hangs_is_named_and_idle_graphs_are_not) {
  for (const path_kind path : {nccl, exchange}) {
    const shared_value<std::atomic<bool>> is_over;
    const auto run = [&](communicator& comm) {
      expect_that_a_hanging_run_is_named(comm);
      if (comm.rank() == 0) {
        is_over->store(true);
      }
      while (!is_over->load()) {
        std::this_thread::sleep_for(1ms);
      }
      comm.abort();
    };
    expect_all_succeeded(run_paths(2, paths_by(path), run, [](int, join_options& options) {
      options.operation_deadline = 500ms;
    }));
  }
}

TEST(all_reduce_overlapped, several_run_beside_a_stream_and_are_joined) {
  for (const path_kind path : {nccl, one_shot}) {
    expect_all_succeeded(run_paths(2, paths_by(path), [&](communicator& comm) {
      const cuda::stream compute = comm.device().create_stream();
      std::vector<device_elements<float>> messages;
      std::vector<overlapped_result> results;
      for (int i = 0; i < 4; ++i) {
        messages.emplace_back(comm, count);
        messages.back().write(message<float>(comm.rank(), count, i), compute);
        results.push_back(
            all_reduce_overlapped(comm, messages.back().span(), reduce_op::sum, compute));
      }
      for (int i = 0; i < 4; ++i) {
        results[static_cast<std::size_t>(i)].join(compute);
      }
      ASSERT_EQ(comm.wait(compute, 10s), wait_result::done);
      for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(results[static_cast<std::size_t>(i)].poll(), progress::done);
        EXPECT_TRUE(same_bits(messages[static_cast<std::size_t>(i)].read(compute),
                              sum_of_ranks<float>(2, count, i)));
      }
    }));
  }
}

}  // namespace
}  // namespace spark_comm::test_support
