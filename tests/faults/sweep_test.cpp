// SPDX-License-Identifier: AGPL-3.0-only
// The sweep: the first native call fails, then the second, and so on until a run is clean.
#include "sweep_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

namespace spark_comm::fault_test {
namespace {

// Where every call is tried, at the begin and at the end of a job. Between them the driver sweeps
// make the events of a whole pool, one like the other: a few of those are enough, unless all are
// asked for.
constexpr int dense_begin = 40;
constexpr int dense_end = 70;
constexpr int samples_between = 6;

bool is_full() {
  return std::getenv("SPARK_COMM_FAULTS_FULL") != nullptr;  // NOLINT(concurrency-mt-unsafe)
}

struct sweep_case {
  const char* name;
  int rank;
  const char* calls;
  const char* occasion;
  int code;
};

std::string rule_of(const sweep_case& each, const std::string& rest) {
  return "rank " + std::to_string(each.rank) + " call " + each.calls + " " + rest;
}

// How many calls a job makes in which none fails.
int count_calls(const sweep_case& each) {
  return run_faulty_job(rule_of(each, "delay 0ns")).at(static_cast<std::size_t>(each.rank));
}

std::vector<int> numbers(int calls) {
  std::vector<int> chosen;
  const int stride = std::max(1, (calls - dense_begin - dense_end) / samples_between);
  for (int n = 1; n <= calls; ++n) {
    const bool is_dense = n <= dense_begin || n > calls - dense_end;
    if (is_full() || is_dense || (n - dense_begin) % stride == 0) {
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
    run_faulty_job(rule_of(each,
                           std::string{each.occasion} + " " + std::to_string(n) + " return " +
                               std::to_string(each.code)));
  }
  // How often a thread looks whether it is time depends on time; far behind the end nothing is hit.
  EXPECT_EQ(run_faulty_job(rule_of(each, "nth " + std::to_string(2 * calls) + " return 1")),
            applied_counts{});
}

INSTANTIATE_TEST_SUITE_P(all,
                         fault_sweep_of,
                         testing::Values(sweep_case{"nccl_once_on_the_head", 0, "nccl*", "nth", 2},
                                         sweep_case{"nccl_once_on_the_other", 1, "nccl*", "nth", 6},
                                         sweep_case{"nccl_from_then_on", 1, "nccl*", "from", 3},
                                         sweep_case{
                                             "driver_once_on_the_head", 0, "cu*", "nth", 700},
                                         sweep_case{"driver_once_on_the_other", 1, "cu*", "nth", 2},
                                         sweep_case{"driver_from_then_on", 1, "cu*", "from", 700}),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace spark_comm::fault_test
