// SPDX-License-Identifier: AGPL-3.0-only
// How a process comes by its fault script, and what a wrong one does. The parent never calls the
// runtime, so that every child looks for a script itself.
#include "support/ranks.hpp"
#include "unit/host/nccl_rank.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace spark_comm::host_test {
namespace {

using variables = std::vector<std::pair<const char*, std::string>>;

constexpr const char* text_variable = "SPARK_COMM_HOST_FAULTS";
constexpr const char* file_variable = "SPARK_COMM_HOST_FAULTS_FILE";

class fault_environment : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Runs `body` in a process with these variables; what it wrote to stderr.
  std::string run_with(const variables& environment, const std::function<void()>& body) const {
    const std::string log = folder_ + "/stderr";
    expect_all_succeeded(run_rank_processes(1, [&](int) {
      for (const auto& [name, value] : environment) {
        ASSERT_EQ(setenv(name, value.c_str(), 1), 0);  // NOLINT(concurrency-mt-unsafe)
      }
      ASSERT_NE(std::freopen(log.c_str(), "w", stderr), nullptr);
      body();
      static_cast<void>(std::fflush(stderr));
    }));
    std::ifstream file{log};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

  std::string write_script(const std::string& text) const {
    std::string path = folder_ + "/script";
    std::ofstream{path} << text;
    return path;
  }

  std::string path_of(const char* name) const { return folder_ + "/" + name; }

 private:
  std::string folder_ = testing::TempDir() + "spark_comm_faults." + std::to_string(getpid());
};

// Every call fails, and stderr has one line about it.
void expect_refused(const std::string& log, const std::string& words) {
  EXPECT_NE(log.find("spark_comm host runtime: "), std::string::npos) << log;
  EXPECT_NE(log.find(words), std::string::npos) << log;
  EXPECT_EQ(log.find('\n'), log.size() - 1) << log;
}

void call_and_expect_refusals() {
  int value = 0;
  EXPECT_EQ(ncclGetVersion(&value), nccl_results::invalid_usage);
  EXPECT_NE(cuInit(0), 0);
  EXPECT_NE(cuDriverGetVersion(&value), 0);
  nccl_id id{};
  EXPECT_EQ(ncclGetUniqueId(&id), nccl_results::invalid_usage);
}

TEST_F(fault_environment, without_a_script_nothing_fails) {
  const std::string log = run_with({}, [] { EXPECT_EQ(cuInit(0), 0); });
  EXPECT_EQ(log, "");
}

TEST_F(fault_environment, a_script_in_a_variable_counts_from_the_first_call) {
  const std::string log = run_with({{text_variable, "rank * call cuInit nth 1 return 100"}}, [] {
    EXPECT_EQ(cuInit(0), 100);
    EXPECT_EQ(cuInit(0), 0);
  });
  EXPECT_EQ(log, "");
}

TEST_F(fault_environment, a_script_in_a_file_is_read_with_comments_and_lines) {
  const std::string path = write_script(
      "# fails twice\nrank * call cuInit nth 1 return 100\n"
      "rank * call cuInit nth 2 return 101\n");
  const std::string log = run_with({{file_variable, path}}, [] {
    EXPECT_EQ(cuInit(0), 100);
    EXPECT_EQ(cuInit(0), 101);
    EXPECT_EQ(cuInit(0), 0);
  });
  EXPECT_EQ(log, "");
}

TEST_F(fault_environment, an_empty_script_is_none) {
  EXPECT_EQ(run_with({{text_variable, ""}}, [] { EXPECT_EQ(cuInit(0), 0); }), "");
}

TEST_F(fault_environment, a_wrong_script_fails_every_call_and_says_why_once) {
  expect_refused(
      run_with({{text_variable, "rank 0 call ncclAllreduce kill"}}, call_and_expect_refusals),
      "SPARK_COMM_HOST_FAULTS: line 1, column 13: 'ncclAllreduce'");
}

TEST_F(fault_environment, a_wrong_file_is_named_with_its_line) {
  const std::string path = write_script("\nrank 0 call cuInit nth 0 kill\n");
  expect_refused(run_with({{file_variable, path}}, call_and_expect_refusals),
                 path + ": line 2, column 24: '0'");
}

TEST_F(fault_environment, a_missing_file_is_refused) {
  const std::string path = path_of("nothing");
  expect_refused(run_with({{file_variable, path}}, call_and_expect_refusals),
                 "cannot read '" + path + "'");
}

TEST_F(fault_environment, two_scripts_are_refused) {
  expect_refused(run_with({{text_variable, "rank 0 abort hang"}, {file_variable, path_of("x")}},
                          call_and_expect_refusals),
                 "both are set");
}

}  // namespace
}  // namespace spark_comm::host_test
