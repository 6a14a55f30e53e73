// SPDX-License-Identifier: AGPL-3.0-only
// Whole jobs with scripts in the place of ranks: how they meet, and what becomes of their reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bench.hpp>
#include <check.hpp>
#include <exit_code.hpp>
#include <invocation.hpp>
#include <rank_job.hpp>
#include <rank_report.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spark_comm::app {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

std::vector<std::string> script(const std::string& text) {
  return {"/bin/sh", "-c", text};
}

/// The head says where it listens, as a real one does.
std::string head_says(const std::string& address) {
  return "if [ $SPARK_COMM_RANK = 0 ]; then echo '" + encode(listening_report{.address = address}) +
         "' >&3; fi; ";
}

std::string says(const rank_report& report) {
  return "echo '" + encode(report) + "' >&3; ";
}

ready_report ready(int world_size, std::size_t rows) {
  ready_report report;
  report.world_size = world_size;
  report.rows = rows;
  return report;
}

measured_report measured(std::uint64_t wrong) {
  return {.row = 0,
          .in_place = false,
          .size_bytes = 1024,
          .count = 256,
          .wrong = wrong,
          .microseconds = wrong == 0 ? std::vector<double>{10.0} : std::vector<double>{}};
}

/// A job of one operation that has no form in place, so that each rank reports once.
bench_options small_job() {
  bench_options options;
  options.what = operation::send_recv;
  return options;
}

invocation running(const std::string& text) {
  return {.command_line = {"spark-comm"}, .rank_command = script(text)};
}

std::string failure_text(const job_options& options, const std::string& text) {
  try {
    run_rank_job(options, script(text), [](int, const rank_report&) {}, [](const std::string&) {});
  } catch (const failure& caught) {
    return caught.what();
  }
  return "no failure";
}

TEST(rank_report, every_kind_survives_the_pipe) {
  const checked_report checked{.operation = "all_reduce",
                               .passed = 7,
                               .failed = 1,
                               .not_supported = {{"fp8: no", 2}},
                               .failures = {"one"},
                               .digest = 0xffffffffffffffffU};
  const auto again = std::get<checked_report>(decode(encode(checked)));
  EXPECT_EQ(again.digest, checked.digest);
  EXPECT_EQ(again.not_supported, checked.not_supported);
  EXPECT_EQ(std::get<measured_report>(decode(encode(measured(3)))).wrong, 3U);
  EXPECT_EQ(std::get<listening_report>(decode(encode(listening_report{"a:1"}))).address, "a:1");
  EXPECT_EQ(std::get<failed_report>(decode(encode(failed_report{2, "\xff no"}))).exit_code, 2);
  EXPECT_EQ(std::get<ready_report>(decode(encode(ready(2, 5)))).rows, 5U);
}

TEST(rank_report, anything_else_is_refused) {
  for (const char* const line : {"", "hello", "{}", R"({"kind":"ready"})", R"({"kind":"other"})"}) {
    EXPECT_THROW(static_cast<void>(decode(line)), failure) << line;
  }
}

TEST(rank_job, the_others_start_where_the_head_listens) {
  std::vector<std::string> lines;
  job_options three;
  three.ranks = 3;
  run_rank_job(
      three,
      script(head_says("127.0.0.1:4711") +
             "echo $SPARK_COMM_RANK of $SPARK_COMM_WORLD_SIZE at $SPARK_COMM_ADDRESS"),
      [](int, const rank_report&) {},
      [&](const std::string& line) { lines.push_back(line); });
  EXPECT_THAT(lines,
              UnorderedElementsAre("[rank 0] 0 of 3 at 127.0.0.1:0",
                                   "[rank 1] 1 of 3 at 127.0.0.1:4711",
                                   "[rank 2] 2 of 3 at 127.0.0.1:4711"));
}

TEST(rank_job, the_rank_that_failed_first_is_quoted_with_its_code) {
  const std::string text = head_says("x:1") + "if [ $SPARK_COMM_RANK = 1 ]; then " +
                           says(failed_report{.exit_code = 2, .text = "too much memory"}) +
                           "exit 2; fi; sleep 60";
  EXPECT_EQ(failure_text({}, text), "rank 1: too much memory");
}

TEST(rank_job, a_rank_that_is_killed_is_named) {
  const std::string text =
      head_says("x:1") + "if [ $SPARK_COMM_RANK = 1 ]; then kill -9 $$; fi; sleep 60";
  EXPECT_EQ(failure_text({}, text),
            "rank 1 was killed by signal 9 (SIGKILL); the others were ended");
}

TEST(rank_job, sharing_a_gpu_makes_hosts_of_the_ranks) {
  const auto find = [](const job_options& options, int rank, const std::string& name) {
    for (const auto& [key, value] : rank_environment(options, rank, "")) {
      if (key == name) {
        return value;
      }
    }
    return std::string{};
  };
  job_options sharing;
  sharing.share_gpu = true;
  EXPECT_EQ(find({}, 0, "NCCL_HOSTID"), "");
  EXPECT_NE(find(sharing, 0, "NCCL_HOSTID"), "");
  EXPECT_NE(find(sharing, 0, "NCCL_HOSTID"), find(sharing, 1, "NCCL_HOSTID"));
}

TEST(bench, right_results_end_well_and_make_one_table) {
  testing::internal::CaptureStdout();
  const exit_code code = run_bench(small_job(),
                                   running(head_says("x:1") + "if [ $SPARK_COMM_RANK = 0 ]; then " +
                                           says(ready(2, 1)) + "else echo '" + encode([] {
                                             ready_report other = ready(2, 1);
                                             other.rank = 1;
                                             return other;
                                           }()) +
                                           "' >&3; fi; " + says(measured(0))));
  const std::string output = testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, exit_code::ok);
  EXPECT_THAT(output, HasSubstr("10.00"));
  EXPECT_THAT(output, HasSubstr("# result   ok"));
  EXPECT_EQ(output.find("bench send_recv"), output.rfind("bench send_recv"));
}

TEST(bench, a_wrong_element_is_counted_and_ends_with_code_1) {
  testing::internal::CaptureStdout();
  const exit_code code = run_bench(
      small_job(),
      running(head_says("x:1") + says(ready(2, 1)) + "if [ $SPARK_COMM_RANK = 0 ]; then " +
              says(measured(0)) + "else " + says(measured(1)) + "fi"));
  const std::string output = testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, exit_code::wrong);
  EXPECT_THAT(output, HasSubstr("wrong    wrong        1"));
  EXPECT_THAT(output, HasSubstr("# result   wrong: 1 of 1 sizes"));
  EXPECT_THAT(output, Not(HasSubstr("10.00")));
}

TEST(bench, worlds_of_one_are_refused) {
  testing::internal::CaptureStdout();
  try {
    static_cast<void>(
        run_bench(small_job(), running(head_says("x:1") + says(ready(1, 1)) + says(measured(0)))));
    ADD_FAILURE();
  } catch (const failure& caught) {
    EXPECT_THAT(caught.what(), HasSubstr("expected 2 ranks, have 1"));
  }
  testing::internal::GetCapturedStdout();
}

TEST(bench, ranks_that_end_without_results_are_no_success) {
  testing::internal::CaptureStdout();
  EXPECT_THROW(static_cast<void>(run_bench(small_job(), running(head_says("x:1")))), failure);
  testing::internal::GetCapturedStdout();
}

TEST(check, ranks_that_differ_end_with_code_1) {
  const auto checked = [](const char* operation, std::uint64_t digest) {
    return says(checked_report{.operation = operation,
                               .passed = 1,
                               .failed = 0,
                               .not_supported = {},
                               .failures = {},
                               .digest = digest});
  };
  std::string same;
  for (const operation what : all_operations) {
    if (what != operation::all_reduce) {
      same += checked(traits_of(what).name.data(), 0);
    }
  }
  const std::string text = head_says("x:1") + says(ready(2, 7)) + same +
                           "if [ $SPARK_COMM_RANK = 0 ]; then " + checked("all_reduce", 1) +
                           "else " + checked("all_reduce", 2) + "fi";
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_check({}, running(text)), exit_code::wrong);
  const std::string output = testing::internal::GetCapturedStdout();
  EXPECT_THAT(output, HasSubstr("differ between them"));
  EXPECT_THAT(output, HasSubstr("result: wrong"));
}

}  // namespace
}  // namespace spark_comm::app
