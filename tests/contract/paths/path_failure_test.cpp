// SPDX-License-Identifier: AGPL-3.0-only
// Peers that do not come, die, or cannot share memory: who is told what, and what goes on.
#include "path_world.hpp"

#include <spark_comm/collectives/all_reduce.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/api.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/paths/path_of.hpp>
#include <spark_comm/supervise/communicator_state.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace spark_comm::test_support {
namespace {

using namespace std::chrono_literals;
using enum path_kind;

path_options paths_by(path_kind path) {
  path_options options;
  options.table = table_of(path);
  options.max_bytes = 4096;
  return options;
}

// What a wait for one all-reduce of 64 elements ends with.
std::optional<error> failure_of_sum(communicator& comm, const cuda::stream& s) {
  const device_elements<float> x{comm, 64};
  x.write(message<float>(comm.rank(), 64), s);
  try {
    all_reduce(comm, x.span(), reduce_op::sum, s);
    EXPECT_EQ(comm.wait(s, 10s), wait_result::done);
  } catch (const error& failure) {
    return failure;
  }
  return std::nullopt;
}

class path_failure_on : public testing::TestWithParam<path_kind> {};

INSTANTIATE_TEST_SUITE_P(paths,
                         path_failure_on,
                         testing::Values(one_shot, two_shot, low_latency),
                         [](const auto& each) { return std::string{name_of(each.param)}; });

TEST_P(path_failure_on, a_peer_that_does_not_come_is_named_at_the_deadline_and_nothing_runs_after) {
  const shared_value<std::atomic<bool>> is_over;
  const auto expect_time_out = [&](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    const auto began = std::chrono::steady_clock::now();
    const std::optional<error> failure = failure_of_sum(comm, s);
    const auto taken = std::chrono::steady_clock::now() - began;
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->kind(), errc::timed_out) << failure->what();
    EXPECT_EQ(failure->context().peers, std::vector{1}) << failure->what();
    EXPECT_GE(taken, 400ms);
    EXPECT_LT(taken, 3s);
    EXPECT_EQ(comm.state(), communicator_state::broken);
    const std::optional<error> later = failure_of_sum(comm, s);
    ASSERT_TRUE(later.has_value());
    EXPECT_EQ(later->message(), failure->message()) << "the first error stays";
    comm.abort();
  };
  expect_all_succeeded(run_paths(
      2,
      paths_by(GetParam()),
      [&](communicator& comm) {
        if (comm.rank() == 0) {
          expect_time_out(comm);
          is_over->store(true);
          return;
        }
        while (!is_over->load()) {
          std::this_thread::sleep_for(1ms);
        }
        comm.abort();
      },
      [](int, join_options& options) { options.operation_deadline = 500ms; }));
}

TEST_P(path_failure_on, without_supervision_the_kernel_alone_tells) {
  const shared_value<std::atomic<bool>> is_over;
  expect_all_succeeded(run_paths(
      2,
      paths_by(GetParam()),
      [&](communicator& comm) {
        if (comm.rank() == 0) {
          const std::optional<error> failure = failure_of_sum(comm, comm.device().create_stream());
          ASSERT_TRUE(failure.has_value());
          EXPECT_EQ(failure->kind(), errc::timed_out) << failure->what();
          EXPECT_EQ(failure->context().peers, std::vector{1});
          is_over->store(true);
        }
        while (!is_over->load()) {
          std::this_thread::sleep_for(1ms);
        }
        comm.abort();
      },
      [](int, join_options& options) {
        options.operation_deadline = 300ms;
        options.supervise.enabled = supervision::off;
      }));
}

TEST_P(path_failure_on, a_killed_peer_is_lost_long_before_the_deadline) {
  const rank_outcomes outcomes = run_paths(2, paths_by(GetParam()), [&](communicator& comm) {
    if (comm.rank() == 1) {
      std::this_thread::sleep_for(100ms);
      ::kill(::getpid(), SIGKILL);
    }
    const auto began = std::chrono::steady_clock::now();
    const std::optional<error> failure = failure_of_sum(comm, comm.device().create_stream());
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->kind(), errc::peer_lost) << failure->what();
    EXPECT_EQ(failure->context().peers, std::vector{1}) << failure->what();
    EXPECT_LT(std::chrono::steady_clock::now() - began, 3s);
    comm.abort();
  });
  EXPECT_EQ(outcomes[0], "");
}

// As the loaded runtime, but no other process's memory can be mapped.
runtime without_imports(const runtime& loaded) {
  cuda::api table = loaded.driver().table();
  table.cuIpcOpenMemHandle_v2 = [](cuda::abi::device_ptr*,
                                   cuda::abi::ipc_mem_handle,
                                   unsigned int) { return cuda::abi::results::not_supported; };
  return runtime::from_parts(
      loaded.kind(), cuda::driver::from_table(table, loaded.log()), loaded.library());
}

TEST(path_failure, one_rank_that_cannot_share_memory_sends_all_by_nccl_with_one_warning) {
  const meeting_place place;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    std::vector<std::string> warnings;
    const diagnostics log{[&](const diagnostic& said) {
      if (said.level != severity::info) {
        warnings.push_back(said.text);
      }
    }};
    runtime loaded = path_runtime(rank, log);
    if (rank == 1) {
      loaded = without_imports(loaded);
    }
    communicator comm = join_at(place, loaded, rank, 2, [](int r, join_options& options) {
      options.paths = paths_by(one_shot);
      options.device = is_on_gpu() ? 0 : r;
      options.sharing = device_sharing::allowed;
    });
    EXPECT_EQ(path_of(comm, {.bytes = 64, .staging_bytes = 64}), nccl);
    EXPECT_EQ(capabilities_of(comm).staging_bytes, 0U);
    EXPECT_EQ(capabilities_of(comm).reach, world_reach::near);
    EXPECT_FALSE(failure_of_sum(comm, comm.device().create_stream()).has_value());
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find("rank 1: rank 0 cannot be mapped"), std::string::npos)
        << warnings[0];
    comm.close(10s);
  }));
}

TEST(path_failure, ranks_with_different_tables_do_not_join) {
  const meeting_place place;
  const rank_outcomes outcomes = run_rank_processes(2, [&](int rank) {
    try {
      static_cast<void>(join_paths(
          place, rank, 2, paths_by(rank == 0 ? one_shot : two_shot), [](int, auto& options) {
            options.deadline = 2s;
          }));
      ADD_FAILURE() << "joined";
    } catch (const error& failure) {
      EXPECT_EQ(failure.kind(), errc::mismatch) << failure.what();
      EXPECT_NE(std::string{failure.what()}.find("path table"), std::string::npos)
          << failure.what();
    }
  });
  expect_all_succeeded(outcomes);
}

std::size_t count_mappings() {
  std::ifstream maps{"/proc/self/maps"};
  std::size_t lines = 0;
  for (std::string line; std::getline(maps, line);) {
    ++lines;
  }
  return lines;
}

TEST(path_failure, opening_and_closing_leaves_no_mapping) {
  constexpr int rounds = 20;
  const std::vector<meeting_place> places(rounds);
  expect_all_succeeded(run_rank_processes(
      2,
      [&](int rank) {
        std::size_t after_first = 0;
        for (int round = 0; round < rounds; ++round) {
          {
            communicator comm =
                join_paths(places[static_cast<std::size_t>(round)], rank, 2, paths_by(low_latency));
            EXPECT_FALSE(failure_of_sum(comm, comm.device().create_stream()).has_value());
            comm.close(10s);
          }
          after_first = round == 3 ? count_mappings() : after_first;
        }
        // Threads that ended leave their stacks to the next ones.
        EXPECT_LE(count_mappings(), after_first + 8);
      },
      60s));
}

}  // namespace
}  // namespace spark_comm::test_support
