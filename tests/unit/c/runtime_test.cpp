// SPDX-License-Identifier: AGPL-3.0-only
// Loading a runtime through the C interface, and the rules of its structs.
#include "support/c_handles.hpp"

#include <spark_comm/spark_comm.h>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace spark_comm {
namespace {

using testing::c_runtime;
using testing::expect_c_error;
using testing::expect_ok;
using testing::load_host;

spark_comm_code load(const spark_comm_runtime_options& options,
                     spark_comm_error** failure,
                     spark_comm_runtime_kind kind = SPARK_COMM_RUNTIME_HOST) {
  spark_comm_runtime* loaded = nullptr;
  const spark_comm_code code = spark_comm_runtime_load(kind, &options, &loaded, failure);
  EXPECT_EQ(loaded == nullptr, code != SPARK_COMM_OK);
  spark_comm_runtime_destroy(loaded);
  return code;
}

spark_comm_runtime_options host_options() {
  spark_comm_runtime_options options{};
  options.struct_size = sizeof options;
  options.host_library = SPARK_COMM_TEST_HOST_RUNTIME;
  return options;
}

TEST(c_runtime, tells_what_was_loaded) {
  const c_runtime loaded = load_host();
  spark_comm_runtime_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(expect_ok(
      [&](auto** failure) { return spark_comm_runtime_describe(loaded.get(), &info, failure); }));
  EXPECT_EQ(info.kind, SPARK_COMM_RUNTIME_HOST);
  EXPECT_GE(info.nccl_version, 21900);
  EXPECT_GE(info.device_count, 1);
  EXPECT_NE(std::string{info.nccl_file}.find("libspark_comm_host"), std::string::npos);
  EXPECT_NE(std::string{info.description}.find("host"), std::string::npos);
  EXPECT_EQ(spark_comm_runtime_supports(loaded.get(), SPARK_COMM_CAPABILITY_WINDOW), 1);
  EXPECT_EQ(spark_comm_runtime_supports(loaded.get(), 99), 0);
  EXPECT_EQ(spark_comm_runtime_supports(nullptr, SPARK_COMM_CAPABILITY_FP8), 0);
}

TEST(c_runtime, what_cannot_be_loaded_is_named) {
  spark_comm_runtime_options options = host_options();
  options.host_library = "/nowhere/libx.so";
  expect_c_error(SPARK_COMM_NOT_SUPPORTED, "/nowhere/libx.so", [&](auto** failure) {
    return load(options, failure);
  });
}

TEST(c_runtime, a_kind_of_its_own_is_refused_and_not_cut_to_a_byte) {
  for (const int kind : {-1, 3, 256, 258}) {
    expect_c_error(SPARK_COMM_INVALID_ARGUMENT,
                   "runtime kind " + std::to_string(kind),
                   [&](auto** failure) { return load(host_options(), failure, kind); });
  }
}

TEST(c_runtime, a_place_for_the_handle_is_needed) {
  expect_c_error(SPARK_COMM_INVALID_ARGUMENT, "spark_comm_runtime_load", [](auto** failure) {
    return spark_comm_runtime_load(SPARK_COMM_RUNTIME_HOST, nullptr, nullptr, failure);
  });
}

TEST(c_structs, a_size_that_was_never_set_is_refused) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{1} << 40U}) {
    spark_comm_runtime_options options = host_options();
    options.struct_size = bytes;
    expect_c_error(SPARK_COMM_INVALID_ARGUMENT,
                   "struct_size is " + std::to_string(bytes),
                   [&](auto** failure) { return load(options, failure); });
  }
}

// A struct of a later version of the header.
struct later_options {
  spark_comm_runtime_options known;
  std::array<char, 24> added;
};

TEST(c_structs, one_of_a_newer_header_is_accepted_while_what_it_adds_is_left_alone) {
  later_options options{.known = host_options(), .added = {}};
  options.known.struct_size = sizeof options;
  expect_ok([&](auto** failure) { return load(options.known, failure); });
  options.added.back() = 1;
  expect_c_error(SPARK_COMM_NOT_SUPPORTED, "newer", [&](auto** failure) {
    return load(options.known, failure);
  });
}

TEST(c_structs, one_of_a_newer_header_is_filled_in_and_its_rest_zeroed) {
  struct later_info {
    spark_comm_runtime_info known;
    std::array<char, 8> added;
  };

  const c_runtime loaded = load_host();
  later_info info{};
  info.known.struct_size = sizeof info;
  info.added.fill('x');
  ASSERT_TRUE(expect_ok([&](auto** failure) {
    return spark_comm_runtime_describe(loaded.get(), &info.known, failure);
  }));
  EXPECT_EQ(info.known.struct_size, sizeof info);
  EXPECT_EQ(info.known.kind, SPARK_COMM_RUNTIME_HOST);
  EXPECT_EQ(info.added, (std::array<char, 8>{}));
}

TEST(c_sink, gets_messages_with_its_data) {
  std::vector<std::string> said;
  {
    // Destroying a communicator that was not closed is worth a warning.
    const c_runtime loaded = load_host(
        [](void* data, spark_comm_severity severity, const char* text) {
          if (severity == SPARK_COMM_SEVERITY_WARNING) {
            static_cast<std::vector<std::string>*>(data)->emplace_back(text);
          }
        },
        &said);
    spark_comm_world place{};
    place.struct_size = sizeof place;
    place.world_size = 1;
    spark_comm_communicator* comm = nullptr;
    ASSERT_TRUE(expect_ok([&](auto** failure) {
      return spark_comm_communicator_join(loaded.get(), &place, nullptr, &comm, failure);
    }));
    spark_comm_communicator_destroy(comm);
  }
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said.front().find("destroyed without close"), std::string::npos);
}

TEST(c_version, of_header_and_library_agree) {
  EXPECT_EQ(spark_comm_version(), SPARK_COMM_VERSION);
}

}  // namespace
}  // namespace spark_comm
