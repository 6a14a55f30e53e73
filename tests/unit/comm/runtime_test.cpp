// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"
#include "support/log_capture.hpp"
#include "support/scripted_tables.hpp"

#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/error.hpp>

#include <gtest/gtest.h>

#include <cstdlib>

namespace spark_comm {
namespace {

using testing::expect_error;

runtime_options with_host(const char* path, const testing::log_capture& log) {
  return {.nccl_library = {}, .host_library = path, .log = log.log()};
}

TEST(runtime, every_kind_has_a_name) {
  EXPECT_EQ(name_of(runtime_kind::automatic), "automatic");
  EXPECT_EQ(name_of(runtime_kind::nvidia), "nvidia");
  EXPECT_EQ(name_of(runtime_kind::host), "host");
}

TEST(runtime, names_the_host_library_that_cannot_be_loaded) {
  const testing::log_capture log;
  expect_error(errc::not_supported, "/nowhere/libx.so", [&] {
    return runtime::load(runtime_kind::host, with_host("/nowhere/libx.so", log));
  });
}

TEST(runtime, refuses_a_library_that_is_something_else) {
  const testing::log_capture log;
  expect_error(errc::not_supported, "libm.so.6", [&] {
    return runtime::load(runtime_kind::host, with_host("libm.so.6", log));
  });
}

TEST(runtime, refuses_a_kind_outside_the_enumeration) {
  const testing::log_capture log;
  expect_error(errc::invalid_argument, "runtime kind 9", [&] {
    return runtime::load(static_cast<runtime_kind>(9), with_host("", log));
  });
}

TEST(runtime, says_what_it_chose_and_why) {
  const testing::log_capture log;
  const runtime loaded =
      runtime::load(runtime_kind::host, with_host(SPARK_COMM_TEST_HOST_RUNTIME, log));
  EXPECT_EQ(loaded.kind(), runtime_kind::host);
  EXPECT_NE(loaded.description().find("host runtime: NCCL 2."), std::string::npos);
  EXPECT_NE(loaded.description().find("asked for"), std::string::npos);
  EXPECT_NE(log.text().find(loaded.description()), std::string::npos);
}

TEST(runtime, of_parts_is_what_it_was_told) {
  const testing::scripted_tables tables;
  const runtime made =
      runtime::from_parts(runtime_kind::nvidia, tables.cuda.driver(), tables.nccl.library());
  EXPECT_EQ(made.kind(), runtime_kind::nvidia);
  EXPECT_EQ(made.library().version(), 22809);
}

TEST(runtime_options, come_from_the_environment) {
  ::setenv("SPARK_COMM_NCCL_LIBRARY", "/a/libnccl.so.2", 1);  // NOLINT(concurrency-mt-unsafe)
  ::setenv("SPARK_COMM_HOST_LIBRARY", "/b/libhost.so", 1);    // NOLINT(concurrency-mt-unsafe)
  const runtime_options read = runtime_options::from_environment();
  ::unsetenv("SPARK_COMM_NCCL_LIBRARY");  // NOLINT(concurrency-mt-unsafe)
  ::unsetenv("SPARK_COMM_HOST_LIBRARY");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(read.nccl_library, "/a/libnccl.so.2");
  EXPECT_EQ(read.host_library, "/b/libhost.so");
}

}  // namespace
}  // namespace spark_comm
