// SPDX-License-Identifier: AGPL-3.0-only
// What each rule of the fault script does to a program that uses the host runtime.
#include "support/ranks.hpp"
#include "unit/host/nccl_rank.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" int spark_comm_host_set_faults(const char* text);

namespace spark_comm::host_test {
namespace {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

constexpr int int32 = 2;

// Runs ranks under a script, each joined to the world.
test_support::rank_outcomes outcomes_of(int ranks,
                                        const std::string& script,
                                        const std::function<void(joined_rank&)>& body) {
  const nccl_id id = make_id();
  return run_rank_processes(ranks, [&](int rank) {
    ASSERT_EQ(spark_comm_host_set_faults(script.c_str()), 0);
    joined_rank me{ranks, id, rank};
    body(me);
  });
}

void run_faulty(int ranks,
                const std::string& script,
                const std::function<void(joined_rank&)>& body) {
  expect_all_succeeded(outcomes_of(ranks, script, body));
}

int reduce_ones(joined_rank& me, std::vector<int>& out) {
  const std::vector<int> ones(out.size(), 1);
  const int code = me.all_reduce(ones, out);
  me.synchronize();
  return code;
}

int reduce_ones(joined_rank& me) {
  std::vector<int> out(4);
  const int code = reduce_ones(me, out);
  EXPECT_EQ(out, std::vector<int>(4, code == 0 ? me.ranks() : 0));
  return code;
}

int state_of(nccl_comm comm) {
  int state = -1;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), 0);
  return state;
}

// --- Actions of calls.

TEST(fault_rules, delay_makes_the_call_late_and_no_other) {
  run_faulty(2, "rank 1 call ncclAllReduce nth 2 delay 120ms", [](joined_rank& me) {
    EXPECT_EQ(reduce_ones(me), 0);
    const auto begin = clock::now();
    EXPECT_EQ(reduce_ones(me), 0);
    EXPECT_GE(clock::now() - begin, milliseconds{100});
    EXPECT_EQ(reduce_ones(me), 0);
  });
}

TEST(fault_rules, return_fails_the_nth_call_alone) {
  run_faulty(2, "rank * call ncclAllReduce nth 2 return 3", [](joined_rank& me) {
    for (const int expected : {0, 3, 0, 0}) {
      EXPECT_EQ(reduce_ones(me), expected);
    }
    EXPECT_EQ(state_of(me.comm()), 0) << "a blocking communicator stays healthy";
  });
}

TEST(fault_rules, from_fails_the_nth_call_and_all_after_it) {
  run_faulty(2, "rank * call ncclAllReduce from 3 return 1000", [](joined_rank& me) {
    for (const int expected : {0, 0, 1000, 1000}) {
      EXPECT_EQ(reduce_ones(me), expected);
    }
  });
}

TEST(fault_rules, a_rule_is_about_its_rank) {
  run_faulty(2, "rank 1 call ncclCommRegister nth 2 return 3", [](joined_rank& me) {
    std::array<int, 4> memory{};
    for (const int expected : {0, me.rank() == 1 ? 3 : 0, 0}) {
      void* handle = nullptr;
      EXPECT_EQ(ncclCommRegister(me.comm(), memory.data(), sizeof(memory), &handle), expected);
      EXPECT_EQ(handle == nullptr, expected != 0);
      EXPECT_EQ(ncclCommDeregister(me.comm(), handle), 0);
    }
  });
}

TEST(fault_rules, a_failed_member_fails_its_group) {
  run_faulty(2, "rank * call ncclSend nth 1 return 2", [](joined_rank& me) {
    std::array<int, 2> data{7, 0};
    const int peer = 1 - me.rank();
    for (const int expected : {2, 0}) {
      EXPECT_EQ(ncclGroupStart(), 0);
      EXPECT_EQ(ncclSend(&data[0], 1, int32, peer, me.comm(), me.stream()), expected);
      EXPECT_EQ(ncclRecv(&data[1], 1, int32, peer, me.comm(), me.stream()), 0);
      EXPECT_EQ(ncclGroupEnd(), expected);
      me.synchronize();
      EXPECT_EQ(data[1], expected == 0 ? 7 : 0);
    }
  });
}

TEST(fault_rules, a_failed_end_ends_its_group_without_launching) {
  run_faulty(2, "rank * call ncclGroupEnd nth 1 return 2", [](joined_rank& me) {
    std::vector<int> out(4);
    EXPECT_EQ(ncclGroupStart(), 0);
    EXPECT_EQ(reduce_ones(me, out), 0);
    EXPECT_EQ(ncclGroupEnd(), 2);
    me.synchronize();
    EXPECT_EQ(out, std::vector<int>(4, 0));
    EXPECT_EQ(ncclGroupEnd(), nccl_results::invalid_usage) << "no group is left open";
    EXPECT_EQ(reduce_ones(me), 0);
  });
}

TEST(fault_rules, a_failed_release_releases_all_the_same) {
  run_faulty(1, "rank 0 call cuMemFree_v2 return 700", [](joined_rank&) {
    cuda::abi::device_ptr memory = 0;
    const int before = spark_comm_host_live_handles(live_device_memory);
    ASSERT_EQ(cuMemAlloc_v2(&memory, 64), 0);
    EXPECT_EQ(cuMemFree_v2(memory), 700);
    EXPECT_EQ(spark_comm_host_live_handles(live_device_memory), before);
  });
}

TEST(fault_rules, a_hanging_call_comes_back_when_its_communicator_is_aborted) {
  run_faulty(2, "rank * call ncclAllReduce nth 1 hang", [](joined_rank& me) {
    std::atomic<bool> is_back = false;
    std::vector<int> out(4);
    std::thread issuer{[&] {
      EXPECT_EQ(reduce_ones(me, out), nccl_results::internal_error);
      is_back = true;
    }};
    std::this_thread::sleep_for(milliseconds{30});
    EXPECT_FALSE(is_back);
    EXPECT_EQ(ncclCommAbort(me.release()), 0);
    issuer.join();
  });
}

TEST(fault_rules, an_abort_hangs_for_ever) {
  run_faulty(1, "rank 0 abort hang", [](joined_rank& me) {
    const auto is_back = std::make_shared<std::atomic<bool>>(false);
    std::thread{[is_back, comm = me.release()] {
      static_cast<void>(ncclCommAbort(comm));
      *is_back = true;
    }}.detach();
    std::this_thread::sleep_for(milliseconds{50});
    EXPECT_FALSE(*is_back);
  });
}

void join_in_progress(const std::string& script, const std::vector<int>& expected_states) {
  expect_all_succeeded(run_rank_processes(1, [&](int) {
    ASSERT_EQ(spark_comm_host_set_faults(script.c_str()), 0);
    const rank_device device;
    nccl_config config;
    config.blocking = 0;
    nccl_comm comm = nullptr;
    const int begun = ncclCommInitRankConfig(&comm, 1, make_id(), 0, &config);
    EXPECT_TRUE(begun == 0 || begun == nccl_results::in_progress);
    std::this_thread::sleep_for(milliseconds{20});  // the real init is over by now
    for (const int expected : expected_states) {
      EXPECT_EQ(state_of(comm), expected);
    }
    EXPECT_EQ(ncclCommAbort(comm), 0);
  }));
}

TEST(fault_rules, in_progress_answers_so_many_polls_and_then_the_code) {
  join_in_progress("rank * call ncclCommInitRankConfig in_progress 3 then 2", {7, 7, 7, 2, 2});
  join_in_progress("rank * call ncclCommInitRankConfig in_progress 2 then 0", {7, 7, 0, 0});
  join_in_progress("rank 0 call ncclCommInitRankConfig nth 2 in_progress 2 then 1", {0, 0});
}

TEST(fault_rules, an_abort_does_not_wait_for_pretended_progress) {
  join_in_progress("rank * call ncclCommInitRankConfig in_progress 1000000000 then 0", {7, 7});
}

// --- Actions of operations.

TEST(fault_rules, async_error_appears_after_so_many_operations) {
  run_faulty(2, "rank * after 2 ops async_error 6", [](joined_rank& me) {
    EXPECT_EQ(reduce_ones(me), 0);
    EXPECT_EQ(state_of(me.comm()), 0);
    EXPECT_EQ(reduce_ones(me), 0);
    EXPECT_EQ(state_of(me.comm()), 6);
    EXPECT_EQ(reduce_ones(me), 6);
    EXPECT_EQ(ncclCommAbort(me.release()), 0);
  });
}

TEST(fault_rules, corrupt_spoils_one_element_of_the_next_result) {
  run_faulty(2, "rank 1 after 1 ops corrupt", [](joined_rank& me) {
    for (int i = 0; i < 3; ++i) {
      std::vector<int> out(4);
      EXPECT_EQ(reduce_ones(me, out), 0);
      const int wrong = 2 ^ (0x40 << 24);
      EXPECT_EQ(out[0], me.rank() == 1 && i == 1 ? wrong : 2) << i;
      EXPECT_EQ(std::vector<int>(out.begin() + 1, out.end()), std::vector<int>(3, 2));
    }
  });
}

// --- Actions on the process.

TEST(fault_rules, kill_ends_the_process_at_the_call) {
  const auto outcomes = outcomes_of(2, "rank 1 call ncclAllReduce nth 2 kill", [](joined_rank& me) {
    EXPECT_EQ(reduce_ones(me), 0);
    if (me.rank() == 1) {
      static_cast<void>(reduce_ones(me));
      ADD_FAILURE() << "still alive";
    }
    EXPECT_EQ(ncclCommAbort(me.release()), 0);
  });
  EXPECT_EQ(outcomes[0], "");
  EXPECT_EQ(outcomes[1], "ended by signal 9\n");
}

TEST(fault_rules, kill_may_follow_an_operation) {
  const auto outcomes = outcomes_of(1, "rank 0 after 2 ops kill", [](joined_rank& me) {
    EXPECT_EQ(reduce_ones(me), 0);
    static_cast<void>(reduce_ones(me));
    ADD_FAILURE() << "still alive";
  });
  EXPECT_EQ(outcomes[0], "ended by signal 9\n");
}

// The state letter of a process: T for stopped.
char state_of_process(pid_t pid) {
  std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
  std::string text;
  std::getline(file, text);
  const std::size_t end_of_name = text.rfind(')');
  return end_of_name == std::string::npos ? '?' : text.at(end_of_name + 2);
}

bool comes_to_stop(pid_t pid) {
  const auto end = clock::now() + std::chrono::seconds{10};
  while (state_of_process(pid) != 'T') {
    if (clock::now() >= end) {
      return false;
    }
    std::this_thread::sleep_for(milliseconds{1});
  }
  return true;
}

void expect_stopped_rank(const std::string& script, const std::function<void(pid_t)>& wake) {
  const test_support::shared_value<std::atomic<pid_t>> sleeper;
  run_faulty(2, script, [&](joined_rank& me) {
    if (me.rank() == 1) {
      *sleeper = getpid();
      EXPECT_EQ(reduce_ones(me), 0);
      return;
    }
    while (*sleeper == 0) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(comes_to_stop(*sleeper));
    wake(*sleeper);
    EXPECT_EQ(reduce_ones(me), 0);
  });
}

TEST(fault_rules, stop_stops_the_process_until_somebody_continues_it) {
  expect_stopped_rank("rank 1 call ncclAllReduce nth 1 stop",
                      [](pid_t pid) { EXPECT_EQ(kill(pid, SIGCONT), 0); });
}

TEST(fault_rules, freeze_stops_the_process_for_its_time) {
  expect_stopped_rank("rank 1 freeze 150ms", [](pid_t) {});
  expect_stopped_rank("rank 1 call ncclAllReduce nth 1 freeze 150ms", [](pid_t) {});
}

// --- Counting.

TEST(fault_rules, patterns_count_all_calls_but_those_that_poll) {
  run_faulty(1, "rank 0 call cuStreamGetCtx return 5", [](joined_rank& me) {
    ASSERT_EQ(spark_comm_host_set_faults("rank * call cu* nth 3 return 999"), 0);
    int value = 0;
    EXPECT_EQ(cuDriverGetVersion(&value), 0);
    EXPECT_EQ(ncclGetVersion(&value), 0) << "of the other table";
    EXPECT_EQ(cuStreamQuery(me.stream()), 0) << "does not count";
    EXPECT_EQ(cuDeviceGetCount(&value), 0);
    EXPECT_EQ(cuDriverGetVersion(&value), 999);
    EXPECT_EQ(cuDriverGetVersion(&value), 0);
    ASSERT_EQ(spark_comm_host_set_faults("rank * call * nth 2 return 999"), 0);
    EXPECT_EQ(ncclGetVersion(&value), 0);
    EXPECT_EQ(cuDriverGetVersion(&value), 999);
    ASSERT_EQ(spark_comm_host_set_faults(nullptr), 0);
    EXPECT_EQ(cuDriverGetVersion(&value), 0);
  });
}

TEST(fault_rules, ranks_of_one_process_count_apart) {
  host_test::run_alone([] {
    ASSERT_EQ(spark_comm_host_set_faults("rank * call ncclAllReduce nth 2 return 3; "
                                         "rank 1 call ncclAllReduce nth 3 return 6"),
              0);
    const nccl_id id = make_id();
    run_rank_threads(2, [&](int rank) {
      joined_rank me{2, id, rank};
      EXPECT_EQ(reduce_ones(me), 0);
      EXPECT_EQ(reduce_ones(me), 3);
      std::vector<int> out(4);
      if (rank == 1) {
        EXPECT_EQ(reduce_ones(me, out), 6);
      }
      EXPECT_EQ(reduce_ones(me), 0);
    });
  });
}

TEST(fault_rules, before_the_init_the_rank_is_that_of_the_launcher) {
  for (const char* rank : {"0", "1"}) {
    expect_all_succeeded(run_rank_processes(1, [&](int) {
      ASSERT_EQ(setenv("SPARK_COMM_RANK", rank, 1), 0);  // NOLINT(concurrency-mt-unsafe)
      ASSERT_EQ(spark_comm_host_set_faults("rank 1 call cuInit return 100"), 0);
      EXPECT_EQ(cuInit(0), *rank == '1' ? 100 : 0);
    }));
  }
}

}  // namespace
}  // namespace spark_comm::host_test
