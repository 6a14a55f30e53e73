// SPDX-License-Identifier: AGPL-3.0-only
// NCCL's rules: groups, configs, non-blocking communicators, registration, texts.
#include "nccl_rank.hpp"

#include <gtest/gtest.h>

#include <array>
#include <climits>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace spark_comm::host_test {
namespace {

using namespace std::chrono_literals;

int all_reduce_one(nccl_comm comm, int& value, cuda::abi::stream stream, int dtype = 2) {
  return ncclAllReduce(&value, &value, 1, dtype, 0, comm, stream);
}

TEST(nccl_group, refuses_an_end_without_a_start) {
  run_alone([] {
    EXPECT_EQ(ncclGroupEnd(), 5);
    EXPECT_EQ(ncclGroupStart(), 0);
    std::thread{[] { EXPECT_EQ(ncclGroupEnd(), 5); }}.join();
    EXPECT_EQ(ncclGroupEnd(), 0);
  });
}

TEST(nccl_group, launches_at_the_outermost_end) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    joined_rank me{2, id, rank};
    int first = 1;
    int second = 2;
    EXPECT_EQ(ncclGroupStart(), 0);
    EXPECT_EQ(ncclGroupStart(), 0);
    EXPECT_EQ(all_reduce_one(me.comm(), first, me.stream()), 0);
    EXPECT_EQ(all_reduce_one(me.comm(), second, me.stream()), 0);
    EXPECT_EQ(ncclGroupEnd(), 0);
    EXPECT_EQ(cuStreamSynchronize(me.stream()), 0);
    EXPECT_EQ(first, 1);
    EXPECT_EQ(ncclGroupEnd(), 0);
    me.synchronize();
    EXPECT_EQ(first, 2);
    EXPECT_EQ(second, 4);
  }));
}

TEST(nccl_group, drops_everything_after_one_failure) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    joined_rank me{2, id, rank};
    int value = 1;
    if (rank == 0) {
      EXPECT_EQ(ncclGroupStart(), 0);
      EXPECT_EQ(all_reduce_one(me.comm(), value, me.stream()), 0);
      EXPECT_EQ(ncclBroadcast(&value, &value, 1, 2, 2, me.comm(), me.stream()), 4);
      EXPECT_EQ(ncclGroupEnd(), 4);
      EXPECT_EQ(cuStreamSynchronize(me.stream()), 0);
      EXPECT_EQ(value, 1);
    }
    EXPECT_EQ(all_reduce_one(me.comm(), value, me.stream()), 0);
    me.synchronize();
    EXPECT_EQ(value, 2);
  }));
}

TEST(nccl_group, moves_messages_between_all_pairs_at_once) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(4, [&](int rank) {
    joined_rank me{4, id, rank};
    constexpr std::size_t count = 500000;  // more than a channel holds
    std::vector<std::vector<int>> out(4, std::vector<int>(count, rank));
    std::vector<std::vector<int>> in(4, std::vector<int>(count, -1));
    EXPECT_EQ(ncclGroupStart(), 0);
    for (int peer = 0; peer < 4; ++peer) {
      const auto i = static_cast<std::size_t>(peer);
      EXPECT_EQ(ncclSend(out[i].data(), count, 2, peer, me.comm(), me.stream()), 0);
    }
    for (int peer = 3; peer >= 0; --peer) {
      const auto i = static_cast<std::size_t>(peer);
      EXPECT_EQ(ncclRecv(in[i].data(), count, 2, peer, me.comm(), me.stream()), 0);
    }
    EXPECT_EQ(ncclGroupEnd(), 0);
    me.synchronize();
    for (int peer = 0; peer < 4; ++peer) {
      EXPECT_EQ(in[static_cast<std::size_t>(peer)], std::vector<int>(count, peer));
    }
  }));
}

TEST(nccl_group, needs_both_halves_of_a_message_to_oneself) {
  run_alone([] {
    joined_rank me{1, make_id(), 0};
    int value = 1;
    EXPECT_EQ(ncclSend(&value, 1, 2, 0, me.comm(), me.stream()), 5);
  });
}

TEST(nccl_group, joins_its_streams) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    joined_rank me{2, id, rank};
    const rank_device other;
    int first = 1;
    int second = 1;
    EXPECT_EQ(ncclGroupStart(), 0);
    EXPECT_EQ(all_reduce_one(me.comm(), first, me.stream()), 0);
    EXPECT_EQ(all_reduce_one(me.comm(), second, other.stream()), 0);
    EXPECT_EQ(ncclGroupEnd(), 0);
    other.synchronize();
    EXPECT_EQ(first, 2);
    EXPECT_EQ(second, 2);
    me.synchronize();
  }));
}

TEST(nccl_group, refuses_mixed_capture) {
  run_alone([] {
    joined_rank me{1, make_id(), 0};
    const rank_device other;
    int value = 1;
    cuda::abi::graph graph = nullptr;
    EXPECT_EQ(cuStreamBeginCapture_v2(other.stream(), cuda::abi::capture_mode::relaxed), 0);
    EXPECT_EQ(ncclGroupStart(), 0);
    EXPECT_EQ(all_reduce_one(me.comm(), value, me.stream()), 0);
    EXPECT_EQ(all_reduce_one(me.comm(), value, other.stream()), 5);
    EXPECT_EQ(ncclGroupEnd(), 5);
    EXPECT_EQ(cuStreamEndCapture(other.stream(), &graph), 0);
    EXPECT_EQ(cuGraphDestroy(graph), 0);
  });
}

TEST(nccl_graph, replays_collectives_in_order_with_eager_ones) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    joined_rank me{2, id, rank};
    int value = 1;
    cuda::abi::graph graph = nullptr;
    cuda::abi::graph_exec exec = nullptr;
    EXPECT_EQ(cuStreamBeginCapture_v2(me.stream(), cuda::abi::capture_mode::relaxed), 0);
    EXPECT_EQ(all_reduce_one(me.comm(), value, me.stream()), 0);
    EXPECT_EQ(all_reduce_one(me.comm(), value, me.stream()), 0);
    EXPECT_EQ(cuStreamEndCapture(me.stream(), &graph), 0);
    EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    for (int round = 0; round < 5; ++round) {
      EXPECT_EQ(cuGraphLaunch(exec, me.stream()), 0);
      EXPECT_EQ(all_reduce_one(me.comm(), value, me.stream()), 0);
    }
    me.synchronize();
    EXPECT_EQ(value, 1 << 15);
    EXPECT_EQ(cuGraphExecDestroy(exec), 0);
    EXPECT_EQ(cuGraphDestroy(graph), 0);
  }));
}

TEST(nccl_order, is_the_order_of_issue_across_streams) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    joined_rank me{2, id, rank};
    const rank_device other;
    int first = 1;
    int second = 10;
    for (int round = 0; round < 100; ++round) {
      EXPECT_EQ(all_reduce_one(me.comm(), first, me.stream()), 0);
      EXPECT_EQ(all_reduce_one(me.comm(), second, other.stream()), 0);
      other.synchronize();
      me.synchronize();
      EXPECT_EQ(first, 2);
      EXPECT_EQ(second, 20);
      first = 1;
      second = 10;
    }
  }));
}

TEST(nccl_collective_rules, drop_empty_ones_and_keep_empty_messages) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    joined_rank me{2, id, rank};
    if (rank == 0) {
      EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, 7, 0, me.comm(), me.stream()), 0);
      me.synchronize();
      EXPECT_EQ(ncclRecv(nullptr, 0, 7, 1, me.comm(), me.stream()), 0);
      EXPECT_EQ(cuStreamQuery(me.stream()), cuda::abi::results::not_ready);
    } else {
      std::this_thread::sleep_for(50ms);
      EXPECT_EQ(ncclSend(nullptr, 0, 7, 0, me.comm(), me.stream()), 0);
    }
    me.synchronize();
  }));
}

TEST(nccl_collective_rules, refuse_bad_arguments) {
  run_alone([] {
    joined_rank me{1, make_id(), 0};
    int value = 1;
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, 12, 0, me.comm(), me.stream()), 4);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, -1, 0, me.comm(), me.stream()), 4);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, 2, 5, me.comm(), me.stream()), 4);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, 2, -1, me.comm(), me.stream()), 4);
    EXPECT_EQ(ncclBroadcast(&value, &value, 1, 2, 1, me.comm(), me.stream()), 4);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, 2, 0, nullptr, me.stream()), 4);
    EXPECT_EQ(all_reduce_one(me.comm(), value, me.stream()), 0);
    me.synchronize();
  });
}

struct config_case {
  const char* name;
  int nccl_config::* field;
  int value;
  int code;
};

class nccl_config_values : public testing::TestWithParam<config_case> {};

TEST_P(nccl_config_values, are_checked) {
  run_alone([] {
    nccl_config config;
    config.*GetParam().field = GetParam().value;
    nccl_comm comm = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, make_id(), 0, &config), GetParam().code);
    EXPECT_EQ(ncclGroupEnd(), GetParam().code == 0 ? 5 : 0);  // the leaked depth
    EXPECT_EQ(ncclCommDestroy(comm), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(
    fields,
    nccl_config_values,
    testing::Values(config_case{"blocking_2", &nccl_config::blocking, 2, 4},
                    config_case{"blocking_1", &nccl_config::blocking, 1, 0},
                    config_case{"blocking_minus_1", &nccl_config::blocking, -1, 4},
                    config_case{"cga_0", &nccl_config::cga_cluster_size, 0, 0},
                    config_case{"cga_minus_1", &nccl_config::cga_cluster_size, -1, 4},
                    config_case{"min_ctas_0", &nccl_config::min_ctas, 0, 4},
                    config_case{"max_ctas_0", &nccl_config::max_ctas, 0, 4},
                    config_case{"split_share_2", &nccl_config::split_share, 2, 4},
                    config_case{"traffic_class_7", &nccl_config::traffic_class, 7, 0},
                    config_case{"cta_policy_2", &nccl_config::cta_policy, 2, 0},
                    config_case{"cta_policy_3", &nccl_config::cta_policy, 3, 4},
                    config_case{"nvls_ctas_0", &nccl_config::nvls_ctas, 0, 4},
                    config_case{"channels_64", &nccl_config::n_channels_per_net_peer, 64, 0},
                    config_case{"channels_65", &nccl_config::n_channels_per_net_peer, 65, 4},
                    config_case{"too_new", &nccl_config::graph_usage_mode, 77, 0}),
    [](const auto& param) { return param.param.name; });

TEST(nccl_config_struct, is_known_by_its_magic_and_gated_by_its_version) {
  run_alone([] {
    nccl_comm comm = nullptr;
    nccl_config config;
    config.version = 21800;
    config.cta_policy = 99;  // not there yet in 2.18
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, make_id(), 0, &config), 0);
    EXPECT_EQ(ncclCommDestroy(comm), 0);
    config = {};
    config.size = 24;
    config.min_ctas = 0;  // behind the end
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, make_id(), 0, &config), 0);
    EXPECT_EQ(ncclCommDestroy(comm), 0);
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, make_id(), 0, nullptr), 0);
    EXPECT_EQ(ncclCommDestroy(comm), 0);
    config = {};
    config.magic = 0x4e43434c;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, make_id(), 0, &config), 4);
  });
  run_alone([] {
    nccl_comm comm = nullptr;
    nccl_config config;
    config.min_ctas = 4;
    config.max_ctas = 2;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, make_id(), 0, &config), 4);
  });
}

// A non-blocking rank of a world of processes.
struct non_blocking_rank : rank_device {
  nccl_comm comm = nullptr;

  non_blocking_rank(int ranks, const nccl_id& id, int rank) {
    nccl_config config;
    config.blocking = 0;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, ranks, id, rank, &config), nccl_results::in_progress);
    EXPECT_EQ(settle(comm), 0);
  }
};

TEST(nccl_non_blocking, answers_in_progress_until_the_launch_is_done) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    non_blocking_rank me{2, id, rank};
    for (int round = 0; round < 20; ++round) {
      int value = 1;
      EXPECT_EQ(all_reduce_one(me.comm, value, me.stream()), nccl_results::in_progress);
      EXPECT_EQ(settle(me.comm), 0);
      me.synchronize();
      EXPECT_EQ(value, 2);
    }
    EXPECT_EQ(ncclCommFinalize(me.comm), nccl_results::in_progress);
    EXPECT_EQ(settle(me.comm), 0);
    EXPECT_EQ(ncclCommDestroy(me.comm), 0);
  }));
}

TEST(nccl_non_blocking, keeps_the_refusal_of_a_call_that_came_too_early) {
  run_alone([] {
    const rank_device device;
    nccl_config config;
    config.blocking = 0;
    nccl_comm comm = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, make_id(), 0, &config), nccl_results::in_progress);
    EXPECT_EQ(settle(comm, 100ms), nccl_results::in_progress);
    int value = 1;
    EXPECT_EQ(all_reduce_one(comm, value, device.stream()), 4);
    int state = 0;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), 0);
    EXPECT_EQ(state, 4);
    EXPECT_EQ(ncclCommDestroy(comm), 4);
    EXPECT_EQ(ncclGroupEnd(), 0);  // the leaked depth
    EXPECT_EQ(ncclCommAbort(comm), 0);
  });
}

TEST(nccl_non_blocking, keeps_an_argument_error) {
  run_alone([] {
    non_blocking_rank me{1, make_id(), 0};
    int value = 1;
    EXPECT_EQ(all_reduce_one(me.comm, value, me.stream(), 77), 4);
    EXPECT_EQ(settle(me.comm), 4);
    EXPECT_EQ(all_reduce_one(me.comm, value, me.stream()), 4);
    EXPECT_EQ(ncclCommAbort(me.comm), 0);
  });
}

TEST(nccl_non_blocking, does_not_mix_with_blocking) {
  run_alone([] {
    non_blocking_rank me{1, make_id(), 0};
    joined_rank other{1, make_id(), 0};
    int value = 1;
    EXPECT_EQ(ncclGroupStart(), 0);
    EXPECT_EQ(all_reduce_one(other.comm(), value, me.stream()), 0);
    EXPECT_EQ(all_reduce_one(me.comm, value, me.stream()), 4);
    EXPECT_EQ(ncclGroupEnd(), 4);
    EXPECT_EQ(ncclCommAbort(me.comm), 0);
  });
}

TEST(nccl_registration, counts_ranges_and_knows_its_handles) {
  run_alone([] {
    joined_rank me{1, make_id(), 0};
    std::vector<char> memory(8192);
    void* whole = nullptr;
    void* again = nullptr;
    void* part = nullptr;
    EXPECT_EQ(ncclCommRegister(me.comm(), memory.data(), 8192, &whole), 0);
    EXPECT_EQ(ncclCommRegister(me.comm(), memory.data(), 8192, &again), 0);
    EXPECT_EQ(ncclCommRegister(me.comm(), memory.data() + 100, 100, &part), 0);
    EXPECT_EQ(whole, again);
    EXPECT_EQ(whole, part);
    EXPECT_EQ(ncclCommDeregister(me.comm(), whole), 0);
    EXPECT_EQ(ncclCommDeregister(me.comm(), again), 0);
    EXPECT_EQ(ncclCommDeregister(me.comm(), part), 0);
    EXPECT_EQ(ncclCommDeregister(me.comm(), whole), 5);
    EXPECT_EQ(ncclCommDeregister(me.comm(), nullptr), 0);
    EXPECT_EQ(ncclCommRegister(nullptr, memory.data(), 1, &whole), 4);
  });
}

TEST(nccl_window, needs_an_aligned_start_and_the_runtimes_memory) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    joined_rank me{2, id, rank};
    void* memory = nullptr;
    EXPECT_EQ(ncclMemAlloc(&memory, 16384), 0);
    auto* bytes = static_cast<char*>(memory);
    ncclWindow_vidmem* window = nullptr;
    EXPECT_EQ(ncclCommWindowRegister(me.comm(), bytes + 1, 4096, &window, 1), 4);
    EXPECT_EQ(window, nullptr);
    EXPECT_EQ(ncclCommWindowRegister(me.comm(), bytes + 4096, 4096, &window, 1), 0);
    EXPECT_NE(window, nullptr);
    void* handle = nullptr;
    EXPECT_EQ(ncclCommRegister(me.comm(), bytes + 4096, 4096, &handle), 0);
    EXPECT_EQ(ncclCommWindowDeregister(me.comm(), window), 0);
    EXPECT_EQ(ncclCommDeregister(me.comm(), handle), 0);
    // Success does not mean a window.
    std::vector<char> plain(4096);
    window = nullptr;
    EXPECT_EQ(ncclCommWindowRegister(me.comm(), plain.data(), 4096, &window, 1), 0);
    EXPECT_EQ(window, nullptr);
    EXPECT_EQ(ncclCommWindowRegister(me.comm(), bytes, 0, &window, 1), 0);
    EXPECT_EQ(ncclCommWindowDeregister(nullptr, nullptr), 0);
    EXPECT_EQ(ncclMemFree(memory), 0);
  }));
}

TEST(nccl_texts, are_there_for_every_code) {
  run_alone([] {
    EXPECT_STREQ(ncclGetErrorString(0), "no error");
    EXPECT_STREQ(ncclGetErrorString(7), "NCCL operation in progress");
    EXPECT_STREQ(ncclGetErrorString(99), "unknown result code");
    EXPECT_STREQ(ncclGetErrorString(-1), "unknown result code");
    int version = 0;
    EXPECT_EQ(ncclGetVersion(&version), 0);
    EXPECT_EQ(version, 22809);
    EXPECT_EQ(ncclGroupEnd(), 5);
    EXPECT_STREQ(ncclGetLastError(nullptr), "ncclGroupEnd: not in a group call.");
  });
}

}  // namespace
}  // namespace spark_comm::host_test
