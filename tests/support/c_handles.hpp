// SPDX-License-Identifier: AGPL-3.0-only
// Handles of the C interface that end with their scope, and calls that are expected to succeed.
#pragma once

#include <spark_comm/spark_comm.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace spark_comm::testing {

template <auto Destroy>
struct destroyer {
  template <typename T>
  void operator()(T* handle) const {
    Destroy(handle);
  }
};

using c_error = std::unique_ptr<spark_comm_error, destroyer<spark_comm_error_destroy>>;
using c_runtime = std::unique_ptr<spark_comm_runtime, destroyer<spark_comm_runtime_destroy>>;
using c_device = std::unique_ptr<spark_comm_device, destroyer<spark_comm_device_destroy>>;
using c_stream = std::unique_ptr<spark_comm_stream, destroyer<spark_comm_stream_destroy>>;
using c_event = std::unique_ptr<spark_comm_event, destroyer<spark_comm_event_destroy>>;
using c_buffer =
    std::unique_ptr<spark_comm_device_buffer, destroyer<spark_comm_device_buffer_destroy>>;
using c_pinned =
    std::unique_ptr<spark_comm_pinned_buffer, destroyer<spark_comm_pinned_buffer_destroy>>;
using c_registration =
    std::unique_ptr<spark_comm_registration, destroyer<spark_comm_registration_destroy>>;
using c_window = std::unique_ptr<spark_comm_window, destroyer<spark_comm_window_destroy>>;
using c_communicator =
    std::unique_ptr<spark_comm_communicator, destroyer<spark_comm_communicator_destroy>>;

/// Expects `call(failure)` to succeed, and prints its error if it does not.
template <typename Call>
bool expect_ok(const Call& call) {
  spark_comm_error* failure = nullptr;
  const spark_comm_code code = call(&failure);
  const c_error owned{failure};
  EXPECT_EQ(code, SPARK_COMM_OK) << spark_comm_error_line(failure);
  EXPECT_EQ(code == SPARK_COMM_OK, failure == nullptr);
  return code == SPARK_COMM_OK;
}

/// Expects `call(failure)` to fail with `expected`, with an error that has the same code and says
/// `words`.
template <typename Call>
void expect_c_error(spark_comm_code expected, const std::string& words, const Call& call) {
  spark_comm_error* failure = nullptr;
  const spark_comm_code code = call(&failure);
  const c_error owned{failure};
  EXPECT_STREQ(spark_comm_code_name(code), spark_comm_code_name(expected));
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(spark_comm_error_code(failure), code);
  EXPECT_NE(std::string{spark_comm_error_line(failure)}.find(words), std::string::npos)
      << "expected '" << words << "' in: " << spark_comm_error_line(failure);
  EXPECT_EQ(call(static_cast<spark_comm_error**>(nullptr)), expected)
      << "without a place for the error";
}

/// The handle that `make(handle, failure)` makes; null and a failed test if it does not.
template <typename Owner, typename Make>
Owner made_by(const Make& make) {
  typename Owner::pointer handle = nullptr;
  expect_ok([&](spark_comm_error** failure) { return make(&handle, failure); });
  return Owner{handle};
}

inline c_runtime load_host(spark_comm_sink sink = nullptr, void* data = nullptr) {
  return made_by<c_runtime>([&](spark_comm_runtime** loaded, spark_comm_error** failure) {
    spark_comm_runtime_options options{};
    options.struct_size = sizeof options;
    options.host_library = SPARK_COMM_TEST_HOST_RUNTIME;
    options.sink = sink;
    options.sink_data = data;
    return spark_comm_runtime_load(SPARK_COMM_RUNTIME_HOST, &options, loaded, failure);
  });
}

}  // namespace spark_comm::testing
