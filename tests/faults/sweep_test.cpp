// SPDX-License-Identifier: AGPL-3.0-only
// The sweep: the first native call fails, then the second, and so on until a run is clean.
#include "sweep_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

namespace spark_comm::fault_test {
namespace {

// Where every call is tried: at the begin of a job and at its end. In between a job makes, and ends
// afterwards, the events of a whole pool, one like the other: of those a few are enough, unless all
// are asked for. What it calls between making and ending them is tried by name.
constexpr int dense_begin = 30;
constexpr int dense_end = 6;
constexpr int samples_between = 6;
constexpr int tries_a_name = 3;

bool is_full() {
  return std::getenv("SPARK_COMM_FAULTS_FULL") != nullptr;  // NOLINT(concurrency-mt-unsafe)
}

struct sweep_case {
  const char* name;
  int rank;
  const char* calls;
  const char* occasion;
  int code;
  int calls_before_meeting;  ///< When one of these fails, the other rank waits for nobody.
  leftovers allowed = leftovers::none;
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const sweep_case& each, std::ostream* out) {
  *out << each.name;
}

std::string rule_of(const sweep_case& each, const std::string& rest) {
  return "rank " + std::to_string(each.rank) + " call " + each.calls + " " + rest;
}

// How many calls a job makes in which none fails.
int count_calls(const sweep_case& each) {
  return run_faulty_job(rule_of(each, "delay 0ns")).at(static_cast<std::size_t>(each.rank));
}

std::vector<int> numbers(int calls) {
  std::vector<int> chosen;
  const int stride = std::max(1, calls / samples_between);
  for (int n = 1; n <= calls; ++n) {
    const bool is_dense = n <= dense_begin || n > calls - dense_end;
    if (is_full() || is_dense || n % stride == 0) {
      chosen.push_back(n);
    }
  }
  return chosen;
}

TEST(fault_sweep, a_job_without_faults_is_clean) {
  EXPECT_EQ(run_faulty_job("rank * call nccl* nth 1000000 return 2"), applied_counts{});
}

class fault_sweep_of : public testing::TestWithParam<sweep_case> {};

TEST_P(fault_sweep_of, native_calls_ends_every_rank_in_time_and_clean) {
  const sweep_case& each = GetParam();
  const int calls = count_calls(each);
  ASSERT_GT(calls, 10);
  for (const int n : numbers(calls)) {
    const duration join_deadline = n <= each.calls_before_meeting ? duration{300ms} : duration{4s};
    run_faulty_job(rule_of(each,
                           std::string{each.occasion} + " " + std::to_string(n) + " return " +
                               std::to_string(each.code)),
                   {.allowed = each.allowed, .join_deadline = join_deadline});
  }
  // How often a thread looks whether it is time depends on time; far behind the end nothing is hit.
  EXPECT_EQ(run_faulty_job(rule_of(each, "nth " + std::to_string(2 * calls) + " return 1")),
            applied_counts{});
}

TEST(fault_sweep, driver_calls_of_operations_end_every_rank_in_time_and_clean) {
  for (const char* call : {"cuCtxGetCurrent",
                           "cuCtxSetCurrent",
                           "cuDevicePrimaryCtxRelease_v2",
                           "cuEventQuery",
                           "cuEventRecord",
                           "cuMemAlloc_v2",
                           "cuMemFree_v2",
                           "cuMemcpyAsync",
                           "cuStreamCreate",
                           "cuStreamDestroy_v2",
                           "cuStreamGetCtx",
                           "cuStreamGetId",
                           "cuStreamIsCapturing",
                           "cuStreamQuery",
                           "cuThreadExchangeStreamCaptureMode"}) {
    for (int n = 1; n <= tries_a_name; ++n) {
      run_faulty_job("rank 1 call " + std::string{call} + " nth " + std::to_string(n) +
                     " return 700");
    }
  }
}

// A native call that does not come back: the ranks end by their deadlines, and leave no more than
// the thread of that call behind. Launches are not here: a thread that hangs in one is freed by
// whoever aborts, and this job has no other thread that would.
TEST(fault_sweep, calls_that_hang_end_by_the_deadlines) {
  constexpr conditions stuck{.allowed = leftovers::stuck_calls, .join_deadline = 1s};
  for (const char* call : {"ncclGetUniqueId",
                           "ncclCommInitRankConfig",
                           "ncclCommSplit",
                           "ncclCommFinalize",
                           "ncclCommDestroy"}) {
    run_faulty_job("rank 0 call " + std::string{call} + " nth 1 hang", stuck);
  }
  run_faulty_job("rank 1 abort hang; rank 1 call ncclAllReduce nth 2 return 2", stuck);
}

// A communicator that stays in progress for ever, or fails after a while, or is only slow.
TEST(fault_sweep, calls_that_stay_pending_end_by_the_deadlines) {
  for (const char* call : {"ncclCommInitRankConfig", "ncclCommSplit", "ncclCommFinalize"}) {
    const std::string rule = "rank 1 call " + std::string{call} + " in_progress ";
    run_faulty_job(rule + "1000000 then 0", {.join_deadline = 1s});
    run_faulty_job(rule + "10 then 3");
    run_faulty_job(rule + "10 then 0");
  }
}

TEST(fault_sweep, asynchronous_errors_reach_every_rank) {
  for (int n = 1; n <= 6; ++n) {
    run_faulty_job("rank 1 after " + std::to_string(n) + " ops async_error 6");
  }
}

INSTANTIATE_TEST_SUITE_P(
    all,
    fault_sweep_of,
    testing::Values(sweep_case{"nccl_once_on_the_head", 0, "nccl*", "nth", 2, 1},
                    sweep_case{"nccl_once_on_the_other", 1, "nccl*", "nth", 6, 1},
                    sweep_case{"nccl_from_then_on", 1, "nccl*", "from", 3, 1},
                    sweep_case{"driver_once_on_the_head", 0, "cu*", "nth", 700, 8},
                    sweep_case{"driver_once_on_the_other", 1, "cu*", "nth", 2, 8},
                    sweep_case{
                        "driver_from_then_on", 1, "cu*", "from", 700, 8, leftovers::handles}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace spark_comm::fault_test
