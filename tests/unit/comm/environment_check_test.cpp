// SPDX-License-Identifier: AGPL-3.0-only
#include "support/log_capture.hpp"

#include <spark_comm/comm/environment_check.hpp>
#include <spark_comm/core/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace spark_comm {
namespace {

using ::testing::HasSubstr;

std::string meant_by(const std::string& name) {
  const std::vector<std::string> names = {name};
  const auto wrong = misspelt_variables(names);
  return wrong.empty() ? "" : wrong.front().nearest;
}

/// Sets a variable while it lives.
class variable_scope {
 public:
  // NOLINTBEGIN(concurrency-mt-unsafe): the test has one thread
  variable_scope(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }

  variable_scope(const variable_scope&) = delete;
  variable_scope& operator=(const variable_scope&) = delete;
  variable_scope(variable_scope&&) = delete;
  variable_scope& operator=(variable_scope&&) = delete;

  ~variable_scope() { ::unsetenv(name_); }

  // NOLINTEND(concurrency-mt-unsafe)

 private:
  const char* name_;
};

TEST(environment_check, finds_the_name_that_was_meant) {
  EXPECT_EQ(meant_by("NCCL_SOCKET_IFNAMES"), "NCCL_SOCKET_IFNAME");
  EXPECT_EQ(meant_by("NCCL_IB_GID_IDX"), "NCCL_IB_GID_INDEX");
  EXPECT_EQ(meant_by("NCLL_DEBUG"), "NCCL_DEBUG");
  EXPECT_EQ(meant_by("SPARK_COMM_KEYFILE"), "SPARK_COMM_KEY_FILE");
  EXPECT_EQ(meant_by("SPARKCOMM_RANK"), "SPARK_COMM_RANK");
  EXPECT_EQ(meant_by("SPARK_COMM_WORLDSIZE"), "SPARK_COMM_WORLD_SIZE");
  EXPECT_EQ(meant_by("SPARK_COMM_FLIGHT"), "SPARK_COMM_FLIGHT_DIR");
}

TEST(environment_check, leaves_right_and_strange_names_alone) {
  for (const auto known : known_variables()) {
    EXPECT_EQ(meant_by(std::string{known}), "") << known;
  }
  for (const char* const name : {"NCCL_DEBUG",
                                 "NCCL_SOCKET_IFNAME",
                                 "NCCL_FASTRAK_CTRL_DEV",
                                 "NCCL_TESTS_DEVICE",
                                 "SPARK_HOME",
                                 "SPARK_COMM_TOOL",
                                 "SPARK_COMM_TEST_RUNTIME",
                                 "PATH",
                                 ""}) {
    EXPECT_EQ(meant_by(name), "") << name;
  }
  EXPECT_TRUE(std::ranges::is_sorted(known_variables()));
}

TEST(environment_check, warns_once_of_each_and_goes_on) {
  const variable_scope first{"NCCL_SOCKET_IFNAMES", "eth0"};
  const variable_scope second{"SPARK_COMM_RNAK", "1"};
  const testing::log_capture capture;
  const diagnostics log = capture.log();
  check_environment(log);
  check_environment(log);
  EXPECT_EQ(capture.size(), 2U);
  EXPECT_THAT(capture.text(), HasSubstr("NCCL_SOCKET_IFNAMES"));
  EXPECT_THAT(capture.text(), HasSubstr("did you mean SPARK_COMM_RANK?"));
  const auto names = environment_names();
  EXPECT_NE(std::ranges::find(names, "SPARK_COMM_RNAK"), names.end());
}

TEST(environment_check, refuses_an_interface_that_is_not_there) {
  {
    const variable_scope wrong{"NCCL_SOCKET_IFNAME", "nosuch0"};
    try {
      check_environment(diagnostics{nullptr});
      ADD_FAILURE();
    } catch (const error& failure) {
      EXPECT_EQ(failure.kind(), errc::invalid_argument);
      EXPECT_THAT(failure.message(), HasSubstr("present are: "));
      EXPECT_THAT(failure.message(), HasSubstr("lo"));
    }
  }
  for (const char* const list : {"lo", "=lo,nosuch0", ""}) {
    const variable_scope right{"NCCL_SOCKET_IFNAME", list};
    EXPECT_NO_THROW(check_environment(diagnostics{nullptr})) << list;
  }
}

}  // namespace
}  // namespace spark_comm
