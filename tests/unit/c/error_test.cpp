// SPDX-License-Identifier: AGPL-3.0-only
// Errors as objects of the C interface, and the names of numbers.
#include "support/c_handles.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/spark_comm.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace spark_comm {
namespace {

using testing::c_error;
using testing::c_runtime;
using testing::load_host;

c_error error_of_a_wrong_device(const c_runtime& loaded) {
  spark_comm_device* device = nullptr;
  spark_comm_error* failure = nullptr;
  EXPECT_EQ(spark_comm_device_open(loaded.get(), 99, &device, &failure),
            SPARK_COMM_INVALID_ARGUMENT);
  EXPECT_EQ(device, nullptr);
  return c_error{failure};
}

TEST(c_error, says_everything_that_is_known_and_nothing_else) {
  const c_runtime loaded = load_host();
  const c_error failure = error_of_a_wrong_device(loaded);
  spark_comm_error_details details{};
  details.struct_size = sizeof details;
  ASSERT_EQ(spark_comm_error_describe(failure.get(), &details), SPARK_COMM_OK);
  EXPECT_EQ(details.code, SPARK_COMM_INVALID_ARGUMENT);
  EXPECT_EQ(details.recovery, SPARK_COMM_FIX_CALL);
  EXPECT_EQ(spark_comm_error_recovery(failure.get()), SPARK_COMM_FIX_CALL);
  EXPECT_NE(std::string{details.message}.find("device 99"), std::string::npos);
  EXPECT_NE(std::string{spark_comm_error_line(failure.get())}.find(details.message),
            std::string::npos);
  EXPECT_STREQ(details.communicator, "");
  EXPECT_EQ(details.rank, -1);
  EXPECT_EQ(details.world_size, 0);
  EXPECT_EQ(details.native_domain, SPARK_COMM_NATIVE_NONE);
  EXPECT_STREQ(details.native_function, "");
  EXPECT_EQ(details.sequence.is_set, 0);
  EXPECT_EQ(details.deadline_ns.is_set, 0);
  EXPECT_EQ(details.peer_count, 0U);
  EXPECT_NE(std::string{details.source_file}.find("device.cpp"), std::string::npos);
  EXPECT_GT(details.source_line, 0U);
}

TEST(c_error, of_memory_that_ran_out_is_null_and_still_says_so) {
  EXPECT_EQ(spark_comm_error_code(nullptr), SPARK_COMM_OUT_OF_MEMORY);
  EXPECT_EQ(spark_comm_error_recovery(nullptr), SPARK_COMM_RETRY);
  EXPECT_NE(std::string{spark_comm_error_line(nullptr)}.find("out_of_memory"), std::string::npos);
  spark_comm_error_destroy(nullptr);
}

TEST(c_error, is_described_into_a_struct_that_knows_its_size) {
  const c_runtime loaded = load_host();
  const c_error failure = error_of_a_wrong_device(loaded);
  spark_comm_error_details details{};
  EXPECT_EQ(spark_comm_error_describe(failure.get(), &details), SPARK_COMM_INVALID_ARGUMENT);
  EXPECT_EQ(spark_comm_error_describe(failure.get(), nullptr), SPARK_COMM_INVALID_ARGUMENT);
  details.struct_size = sizeof details;
  EXPECT_EQ(spark_comm_error_describe(nullptr, &details), SPARK_COMM_INVALID_ARGUMENT);
}

TEST(c_names, are_those_of_the_library) {
  EXPECT_STREQ(spark_comm_code_name(SPARK_COMM_OK), "ok");
  for (const errc each : all_errcs) {
    EXPECT_EQ(spark_comm_code_name(static_cast<int>(each)), name_of(each));
  }
  for (const data_type each : all_data_types) {
    EXPECT_EQ(spark_comm_data_type_name(static_cast<int>(each)), name_of(each));
    EXPECT_EQ(spark_comm_data_type_size(static_cast<int>(each)), size_of(each));
  }
  for (const reduce_op each : all_reduce_ops) {
    EXPECT_EQ(spark_comm_reduce_op_name(static_cast<int>(each)), name_of(each));
  }
  EXPECT_STREQ(spark_comm_recovery_name(SPARK_COMM_RECONNECT), "reconnect");
  EXPECT_STREQ(spark_comm_state_name(SPARK_COMM_STATE_BROKEN), "broken");
  EXPECT_STREQ(spark_comm_path_name(SPARK_COMM_PATH_LOW_LATENCY), "low_latency");
  EXPECT_STREQ(spark_comm_operation_name(SPARK_COMM_OPERATION_ALL_GATHER), "all_gather");
}

TEST(c_names, of_other_numbers_are_unknown_and_not_cut_to_a_byte) {
  constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
  for (const std::int32_t number : {lowest, -1, 100, 254, 256, 257, 1 << 30}) {
    EXPECT_STREQ(spark_comm_code_name(number), "unknown") << number;
    EXPECT_STREQ(spark_comm_recovery_name(number), "unknown") << number;
    EXPECT_STREQ(spark_comm_data_type_name(number), "unknown") << number;
    EXPECT_STREQ(spark_comm_reduce_op_name(number), "unknown") << number;
    EXPECT_STREQ(spark_comm_state_name(number), "unknown") << number;
    EXPECT_STREQ(spark_comm_path_name(number), "unknown") << number;
    EXPECT_STREQ(spark_comm_operation_name(number), "unknown") << number;
    EXPECT_EQ(spark_comm_data_type_size(number), 0U) << number;
  }
}

}  // namespace
}  // namespace spark_comm
