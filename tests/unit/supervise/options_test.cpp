// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/supervise/options.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using variables = std::map<std::string, std::string>;

supervise_options read(const variables& set, const supervise_options& defaults = {}) {
  return supervise_options::from_environment(
      defaults, [&](const std::string& name) -> std::optional<std::string> {
        const auto found = set.find(name);
        return found == set.end() ? std::nullopt : std::optional{found->second};
      });
}

TEST(options, defaults_are_valid_and_all_checks_have_names) {
  EXPECT_NO_THROW(supervise_options{}.validate());
  for (const mismatch_check check : all_mismatch_checks) {
    EXPECT_NE(name_of(check), "unknown");
  }
  EXPECT_EQ(name_of(static_cast<mismatch_check>(9)), "unknown");
}

TEST(options, every_variable_reaches_its_field) {
  const supervise_options options = read({{"SPARK_COMM_SUPERVISION", "off"},
                                          {"SPARK_COMM_MISMATCH_CHECK", "strict"},
                                          {"SPARK_COMM_HEARTBEAT_MS", "20"},
                                          {"SPARK_COMM_SILENCE_MS", "700"},
                                          {"SPARK_COMM_FLIGHT_DIR", "/var/tmp"},
                                          {"SPARK_COMM_FLIGHT_ENTRIES", "64"},
                                          {"SPARK_COMM_METRICS_DIR", "/metrics"},
                                          {"SPARK_COMM_METRICS_PORT", "9400"}});
  EXPECT_EQ(options.enabled, supervision::off);
  EXPECT_EQ(options.check, mismatch_check::strict);
  EXPECT_EQ(options.heartbeat_interval, 20ms);
  EXPECT_EQ(options.silence_limit, 700ms);
  EXPECT_EQ(options.record_directory, "/var/tmp");
  EXPECT_EQ(options.record_capacity, 64U);
  EXPECT_EQ(options.metrics_directory, "/metrics");
  EXPECT_EQ(options.metrics_port, 9400);
  EXPECT_EQ(std::size(supervise_variables), 8U);
}

TEST(options, what_is_not_set_keeps_its_default) {
  supervise_options defaults;
  defaults.heartbeat_interval = 33ms;
  defaults.record_directory = "/d";
  const supervise_options options = read({{"SPARK_COMM_SUPERVISION", "on"}}, defaults);
  EXPECT_EQ(options.heartbeat_interval, 33ms);
  EXPECT_EQ(options.record_directory, "/d");
  EXPECT_EQ(options.enabled, supervision::on);
}

TEST(options, wrong_values_are_refused_by_name) {
  struct row {
    const char* name;
    const char* value;
    const char* text;
  };

  const row rows[] = {
      {"SPARK_COMM_SUPERVISION", "yes", "SPARK_COMM_SUPERVISION is 'yes', not on or off"},
      {"SPARK_COMM_MISMATCH_CHECK", "", "SPARK_COMM_MISMATCH_CHECK is '', not background, "},
      {"SPARK_COMM_HEARTBEAT_MS", "10x", "SPARK_COMM_HEARTBEAT_MS is '10x', not a whole number"},
      {"SPARK_COMM_HEARTBEAT_MS", "-1", "not a whole number"},
      {"SPARK_COMM_HEARTBEAT_MS", " 1", "not a whole number"},
      {"SPARK_COMM_HEARTBEAT_MS", "0", "heartbeat_interval is '0 ms', not 1 ms to 60000 ms"},
      {"SPARK_COMM_HEARTBEAT_MS", "99999999999999999999", "not a whole number"},
      {"SPARK_COMM_SILENCE_MS", "86400001", "not at most a day"},
      {"SPARK_COMM_SILENCE_MS", "299", "not at least three heartbeats (300 ms)"},
      {"SPARK_COMM_FLIGHT_ENTRIES", "0", "record_capacity is '0', not 1 to 1048576"},
      {"SPARK_COMM_FLIGHT_ENTRIES", "1048577", "not 1 to 1048576"},
      {"SPARK_COMM_METRICS_PORT", "65536", "SPARK_COMM_METRICS_PORT is '65536', not a port"},
      {"SPARK_COMM_METRICS_PORT", "http", "not a whole number"},
  };
  for (const row& each : rows) {
    try {
      (void)read({{each.name, each.value}});
      FAIL() << each.name << "=" << each.value;
    } catch (const error& thrown) {
      EXPECT_EQ(thrown.kind(), errc::invalid_argument);
      EXPECT_THAT(thrown.message(), HasSubstr(each.text));
    }
  }
}

TEST(options, the_process_environment_can_be_read) {
  EXPECT_NO_THROW((void)supervise_options::from_environment());
}

}  // namespace
}  // namespace spark_comm
