// SPDX-License-Identifier: AGPL-3.0-only
// Lives of communicators: init and its refusals, split, shrink, finalize, destroy, abort, dead
// peers.
#include "nccl_rank.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace spark_comm::host_test {
namespace {

using namespace std::chrono_literals;

void expect_sum(joined_rank& me) {
  const std::vector<int> in(100, me.rank() + 1);
  std::vector<int> out(100);
  EXPECT_EQ(me.all_reduce(in, out), 0);
  me.synchronize();
  EXPECT_EQ(out, std::vector<int>(100, me.ranks() * (me.ranks() + 1) / 2));
}

nccl_config non_blocking() {
  nccl_config config;
  config.blocking = 0;
  return config;
}

TEST(rank_processes, report_failures_signals_and_hangs) {
  const auto outcomes = run_rank_processes(
      4,
      [](int rank) {
        if (rank == 1) {
          ADD_FAILURE() << "on purpose";
        } else if (rank == 2) {
          static_cast<void>(::raise(SIGKILL));
        } else if (rank == 3) {
          std::this_thread::sleep_for(1h);
        }
      },
      300ms);
  EXPECT_EQ(outcomes[0], "");
  EXPECT_NE(outcomes[1].find("on purpose"), std::string::npos);
  EXPECT_EQ(outcomes[2], "ended by signal 9\n");
  EXPECT_EQ(outcomes[3], "hung: killed at the limit\n");
}

TEST(nccl_init, joins_threads_of_one_process) {
  run_alone([] {
    const nccl_id id = make_id();
    run_rank_threads(4, [&](int rank) {
      joined_rank me{4, id, rank};
      expect_sum(me);
    });
  });
}

TEST(nccl_init, joins_all_ranks_from_one_thread_in_a_group) {
  run_alone([] {
    const rank_device device;
    const nccl_id id = make_id();
    std::array<nccl_comm, 3> comms{};
    std::array<cuda::abi::stream, 3> streams{};
    EXPECT_EQ(ncclGroupStart(), 0);
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(ncclCommInitRank(&comms[static_cast<std::size_t>(rank)], 3, id, rank), 0);
    }
    EXPECT_EQ(ncclGroupEnd(), 0);
    std::array<int, 3> values{1, 2, 4};
    EXPECT_EQ(ncclGroupStart(), 0);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(cuStreamCreate(&streams[rank], 1), 0);
      EXPECT_EQ(ncclAllReduce(&values[rank], &values[rank], 1, 2, 0, comms[rank], streams[rank]),
                0);
    }
    EXPECT_EQ(ncclGroupEnd(), 0);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(cuStreamSynchronize(streams[rank]), 0);
      EXPECT_EQ(values[rank], 7);
      EXPECT_EQ(ncclCommDestroy(comms[rank]), 0);
      EXPECT_EQ(cuStreamDestroy_v2(streams[rank]), 0);
    }
  });
}

TEST(nccl_init, makes_a_communicator_for_each_device) {
  run_alone([] {
    const rank_device device;
    std::array<nccl_comm, 2> comms{};
    const std::array<int, 2> devices{0, 1};
    EXPECT_EQ(ncclCommInitAll(comms.data(), 2, devices.data()), 0);
    int value = -1;
    EXPECT_EQ(ncclCommCuDevice(comms[1], &value), 0);
    EXPECT_EQ(value, 1);
    EXPECT_EQ(ncclCommCount(comms[1], &value), 0);
    EXPECT_EQ(value, 2);
    EXPECT_EQ(ncclCommUserRank(comms[1], &value), 0);
    EXPECT_EQ(value, 1);
    EXPECT_EQ(ncclCommDestroy(comms[0]), 0);
    EXPECT_EQ(ncclCommDestroy(comms[1]), 0);
    const std::array<int, 2> twice{0, 0};
    EXPECT_EQ(ncclCommInitAll(comms.data(), 2, twice.data()), nccl_results::invalid_usage);
  });
}

TEST(nccl_init, refuses_bad_arguments) {
  run_alone([] {
    const nccl_id id = make_id();
    nccl_comm comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(nullptr, 1, id, 0), 4);
    EXPECT_EQ(ncclCommInitRank(&comm, 0, id, 0), 4);
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 2), 4);
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, -1), 4);
    EXPECT_EQ(ncclCommInitRank(&comm, 65, id, 0), 4);
    EXPECT_EQ(ncclGetUniqueId(nullptr), 4);
    EXPECT_EQ(ncclGetVersion(nullptr), 4);
    EXPECT_EQ(comm, nullptr);
  });
}

TEST(nccl_init, says_what_is_wrong_with_an_id) {
  nccl_comm comm = nullptr;
  nccl_id zeros{};
  EXPECT_EQ(ncclCommInitRank(&comm, 1, zeros, 0), 4);
  EXPECT_NE(std::string{ncclGetLastError(nullptr)}.find("ncclGetUniqueId"), std::string::npos);
  const test_support::shared_value<nccl_id> id;
  expect_all_succeeded(run_rank_processes(1, [&](int) { *id = make_id(); }));
  EXPECT_EQ(ncclCommInitRank(&comm, 1, *id, 0), nccl_results::system_error);
  EXPECT_NE(std::string{ncclGetLastError(nullptr)}.find("has ended"), std::string::npos);
}

TEST(nccl_init, gives_an_id_to_one_communicator) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(1, [&](int) {
    joined_rank me{1, id, 0};
    nccl_comm second = nullptr;
    EXPECT_EQ(ncclCommInitRank(&second, 1, id, 0), nccl_results::invalid_usage);
    EXPECT_EQ(second, nullptr);
    expect_sum(me);
  }));
}

// The rank that disagrees is told; the others wait until they are aborted.
void expect_disagreement(int ranks, int rank) {
  const nccl_id id = make_id();
  const test_support::shared_value<std::atomic<bool>> is_waiting;
  expect_all_succeeded(run_rank_processes(2, [&](int process) {
    if (process == 1) {
      EXPECT_TRUE(eventually([&] { return is_waiting->load(); }));
      nccl_comm comm = nullptr;
      EXPECT_EQ(ncclCommInitRank(&comm, ranks, id, rank), nccl_results::invalid_usage);
      return;
    }
    nccl_config config = non_blocking();
    nccl_comm comm = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &config), nccl_results::in_progress);
    std::this_thread::sleep_for(50ms);
    *is_waiting = true;
    EXPECT_EQ(settle(comm, 100ms), nccl_results::in_progress);
    EXPECT_EQ(ncclCommAbort(comm), 0);
  }));
}

TEST(nccl_init, tells_only_the_rank_with_another_world_size) {
  expect_disagreement(3, 1);
}

TEST(nccl_init, tells_only_the_second_rank_of_a_number) {
  expect_disagreement(2, 0);
}

TEST(nccl_init, ends_with_an_error_when_another_thread_aborts) {
  run_alone([] {
    const nccl_id id = make_id();
    nccl_comm comm = nullptr;
    std::atomic<int> code{-1};
    std::thread waiting{[&] { code = ncclCommInitRank(&comm, 2, id, 0); }};
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(code, -1);
    EXPECT_EQ(ncclCommAbort(std::atomic_ref{comm}.load()), 0);
    waiting.join();
    EXPECT_EQ(code, nccl_results::internal_error);
  });
}

TEST(nccl_split, makes_a_child_of_each_colour_in_order_of_keys) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(4, [&](int rank) {
    joined_rank me{4, id, rank};
    for (int round = 0; round < 3; ++round) {
      nccl_comm child = nullptr;
      EXPECT_EQ(ncclCommSplit(me.comm(), rank % 2, -rank, &child, nullptr), 0);
      int child_rank = -1;
      EXPECT_EQ(ncclCommUserRank(child, &child_rank), 0);
      EXPECT_EQ(child_rank, rank < 2 ? 1 : 0);
      int value = 1 << rank;
      EXPECT_EQ(ncclAllReduce(&value, &value, 1, 2, 0, child, me.stream()), 0);
      me.synchronize();
      EXPECT_EQ(value, rank % 2 == 0 ? 5 : 10);
      EXPECT_EQ(ncclCommDestroy(child), 0);
    }
    nccl_comm none = me.comm();
    EXPECT_EQ(ncclCommSplit(me.comm(), rank == 0 ? 0 : -1, 0, &none, nullptr), 0);
    EXPECT_EQ(none != nullptr, rank == 0);
    EXPECT_EQ(ncclCommDestroy(none), 0);
    EXPECT_EQ(ncclCommSplit(me.comm(), -2, 0, &none, nullptr), 4);
    expect_sum(me);
  }));
}

TEST(nccl_split, makes_a_blocking_child_of_a_non_blocking_parent) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    const rank_device device;
    nccl_config config = non_blocking();
    nccl_comm parent = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&parent, 2, id, rank, &config), nccl_results::in_progress);
    EXPECT_EQ(settle(parent), 0);
    nccl_config child_config;
    child_config.blocking = 1;
    child_config.split_share = 1;
    nccl_comm child = nullptr;
    EXPECT_EQ(ncclCommSplit(parent, 0, rank, &child, &child_config), 0);
    EXPECT_EQ(settle(parent), 0);
    int value = rank + 1;
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, 2, 0, child, device.stream()), 0);
    device.synchronize();
    EXPECT_EQ(value, 3);
    // The two share their abort flag.
    EXPECT_EQ(ncclCommAbort(parent), 0);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, 2, 0, child, device.stream()), 5);
    EXPECT_EQ(ncclCommAbort(child), 0);
  }));
}

TEST(nccl_shrink, leaves_the_excluded_ranks_out) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(3, [&](int rank) {
    joined_rank me{3, id, rank};
    if (rank == 1) {
      return;
    }
    int excluded = 1;
    nccl_comm child = nullptr;
    EXPECT_EQ(ncclCommShrink(me.comm(), &excluded, 1, &child, nullptr, 0), 0);
    int value = rank + 1;
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, 2, 0, child, me.stream()), 0);
    me.synchronize();
    EXPECT_EQ(value, 4);
    EXPECT_EQ(ncclCommDestroy(child), 0);
  }));
}

TEST(nccl_abort, ends_a_collective_that_waits_and_drains_the_stream) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    joined_rank me{2, id, rank};
    expect_sum(me);
    if (rank == 1) {
      EXPECT_EQ(ncclCommAbort(me.release()), 0);
      return;
    }
    std::vector<int> data(1000000);
    EXPECT_EQ(me.all_reduce(data, data), 0);
    EXPECT_EQ(cuStreamQuery(me.stream()), cuda::abi::results::not_ready);
    std::thread other{[&] {
      std::this_thread::sleep_for(50ms);
      EXPECT_EQ(ncclCommAbort(me.release()), 0);
    }};
    me.synchronize();
    other.join();
  }));
}

TEST(nccl_abort, works_after_a_peer_was_killed_which_nobody_reports) {
  const nccl_id id = make_id();
  const auto outcomes = run_rank_processes(3, [&](int rank) {
    joined_rank me{3, id, rank};
    expect_sum(me);
    if (rank == 2) {
      static_cast<void>(::raise(SIGKILL));
    }
    std::vector<int> data(3000000);
    EXPECT_EQ(me.all_reduce(data, data), 0);
    std::this_thread::sleep_for(100ms);
    int state = -1;
    EXPECT_EQ(ncclCommGetAsyncError(me.comm(), &state), 0);
    EXPECT_EQ(state, 0);
    EXPECT_EQ(cuStreamQuery(me.stream()), cuda::abi::results::not_ready);
    EXPECT_EQ(ncclCommAbort(me.release()), 0);
    me.synchronize();
  });
  EXPECT_EQ(outcomes[0], "");
  EXPECT_EQ(outcomes[1], "");
  EXPECT_EQ(outcomes[2], "ended by signal 9\n");
}

TEST(nccl_abort, of_several_in_a_group_does_not_wait_for_one_another) {
  run_alone([] {
    const rank_device device;
    nccl_config config = non_blocking();
    std::array<nccl_comm, 2> comms{};
    EXPECT_EQ(ncclGroupStart(), 0);
    for (nccl_comm& each : comms) {
      EXPECT_EQ(ncclCommInitRankConfig(&each, 2, make_id(), 0, &config), 0);
    }
    EXPECT_EQ(ncclGroupEnd(), nccl_results::in_progress);
    EXPECT_EQ(ncclGroupStart(), 0);
    for (const nccl_comm each : comms) {
      EXPECT_EQ(ncclCommAbort(each), 0);
    }
    EXPECT_EQ(ncclGroupEnd(), 0);
    EXPECT_EQ(ncclCommAbort(comms[0]), 4);
  });
}

TEST(nccl_abort, waits_until_no_graph_holds_an_operation) {
  run_alone([] {
    const nccl_id id = make_id();
    joined_rank me{1, id, 0};
    int value = 1;
    cuda::abi::graph graph = nullptr;
    EXPECT_EQ(cuStreamBeginCapture_v2(me.stream(), cuda::abi::capture_mode::thread_local_mode), 0);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, 2, 0, me.comm(), me.stream()), 0);
    EXPECT_EQ(cuStreamEndCapture(me.stream(), &graph), 0);
    std::atomic<bool> is_over{false};
    std::thread aborting{[&, comm = me.release()] {
      EXPECT_EQ(ncclCommAbort(comm), 0);
      is_over = true;
    }};
    std::this_thread::sleep_for(50ms);
    EXPECT_FALSE(is_over);
    EXPECT_EQ(cuGraphDestroy(graph), 0);
    aborting.join();
    EXPECT_TRUE(is_over);
  });
}

TEST(nccl_destroy, refuses_a_second_time_and_leaks_the_group_depth) {
  run_alone([] {
    joined_rank me{1, make_id(), 0};
    const nccl_comm comm = me.release();
    EXPECT_EQ(ncclCommDestroy(comm), 0);
    EXPECT_EQ(ncclGroupEnd(), 5);
    EXPECT_EQ(ncclCommDestroy(comm), 4);
    EXPECT_EQ(ncclGroupEnd(), 0);
    EXPECT_EQ(ncclGroupEnd(), 5);
    EXPECT_EQ(ncclCommDestroy(nullptr), 0);
    EXPECT_EQ(ncclCommAbort(nullptr), 0);
    EXPECT_EQ(ncclCommFinalize(nullptr), 0);
  });
}

TEST(nccl_finalize, is_allowed_once) {
  run_alone([] {
    joined_rank me{1, make_id(), 0};
    EXPECT_EQ(ncclCommFinalize(me.comm()), 0);
    EXPECT_EQ(ncclCommFinalize(me.comm()), 4);
  });
}

TEST(nccl_revoke, ends_what_runs_and_refuses_what_comes) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    joined_rank me{2, id, rank};
    int value = 1;
    if (rank == 0) {
      EXPECT_EQ(ncclAllReduce(&value, &value, 1, 2, 0, me.comm(), me.stream()), 0);
    }
    EXPECT_EQ(ncclCommRevoke(me.comm(), 1), 4);
    EXPECT_EQ(ncclCommRevoke(me.comm(), 0), 0);
    me.synchronize();
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, 2, 0, me.comm(), me.stream()), 5);
    EXPECT_EQ(ncclCommRevoke(me.comm(), 0), 4);
    nccl_comm child = nullptr;
    EXPECT_EQ(ncclCommSplit(me.comm(), 0, 0, &child, nullptr), 0);
    EXPECT_EQ(ncclCommDestroy(child), 0);
  }));
}

TEST(nccl_counts, that_differ_harm_no_memory) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    joined_rank me{2, id, rank};
    const std::size_t count = rank == 0 ? 100000 : 50000;
    std::vector<int> data(200000, 9);
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), count, 2, 0, me.comm(), me.stream()), 0);
    EXPECT_TRUE(rank == 0 || eventually([&] { return cuStreamQuery(me.stream()) == 0; }));
    std::this_thread::sleep_for(200ms);
    EXPECT_EQ(ncclCommAbort(me.release()), 0);
    me.synchronize();
    EXPECT_EQ(std::vector<int>(data.begin() + static_cast<std::ptrdiff_t>(count), data.end()),
              std::vector<int>(200000 - count, 9));
  }));
}

}  // namespace
}  // namespace spark_comm::host_test
