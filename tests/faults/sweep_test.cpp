// SPDX-License-Identifier: AGPL-3.0-only
// The sweep: the first native call fails, then the second, and so on until a run is clean.
#include "sweep_world.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace spark_comm::fault_test {
namespace {

// All of them when the environment asks for it; otherwise the first ones, and every seventh after.
constexpr int dense = 60;
constexpr int stride = 7;

int next(int n) {
  const bool is_full = std::getenv("SPARK_COMM_FAULTS_FULL") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  return is_full || n < dense ? n + 1 : n + stride;
}

// `calls` and `action` around the number.
void sweep(const std::string& rank, const std::string& calls, const std::string& occasion, int code) {
  constexpr int limit = 2000;
  int n = 1;
  while (n < limit && run_faulty_job("rank " + rank + " call " + calls + " " + occasion + " " +
                                     std::to_string(n) + " return " + std::to_string(code))) {
    if (testing::Test::HasFatalFailure()) {
      return;
    }
    n = next(n);
  }
  EXPECT_GT(n, 5) << "the sweep has hardly begun";
  EXPECT_LT(n, limit);
  testing::Test::RecordProperty("calls", n);
}

TEST(fault_sweep, a_job_without_faults_is_clean) {
  EXPECT_FALSE(run_faulty_job("rank * call nccl* nth 1000000 return 2"));
}

struct sweep_case {
  const char* name;
  const char* rank;
  const char* calls;
  const char* occasion;
  int code;
};

class fault_sweep_of : public testing::TestWithParam<sweep_case> {};

TEST_P(fault_sweep_of, native_calls_ends_every_rank_in_time_and_clean) {
  const sweep_case& each = GetParam();
  sweep(each.rank, each.calls, each.occasion, each.code);
}

INSTANTIATE_TEST_SUITE_P(
    all,
    fault_sweep_of,
    testing::Values(sweep_case{"nccl_once_on_the_head", "0", "nccl*", "nth", 2},
                    sweep_case{"nccl_once_on_the_other", "1", "nccl*", "nth", 6},
                    sweep_case{"nccl_from_then_on", "1", "nccl*", "from", 3},
                    sweep_case{"driver_once_on_the_head", "0", "cu*", "nth", 700},
                    sweep_case{"driver_once_on_the_other", "1", "cu*", "nth", 2},
                    sweep_case{"driver_from_then_on", "1", "cu*", "from", 700}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace spark_comm::fault_test
