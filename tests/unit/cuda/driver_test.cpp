// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"
#include "support/log_capture.hpp"
#include "support/scripted_tables.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/driver.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

namespace spark_comm::cuda {
namespace {

using testing::error_of;
using testing::expect_error;

TEST(cuda_driver, missing_file_is_not_supported_with_the_loaders_words) {
  expect_error(errc::not_supported,
               "cannot load libno_such_driver.so.1: libno_such_driver.so.1",
               [] { return driver::load("libno_such_driver.so.1", {}); });
}

TEST(cuda_driver, library_without_the_calls_names_the_first_missing_one) {
  expect_error(
      errc::not_supported, "libm.so.6 lacks cuInit", [] { return driver::load("libm.so.6", {}); });
}

TEST(cuda_driver, every_code_we_tell_apart_maps_to_ours) {
  namespace r = abi::results;
  constexpr auto table = std::to_array<std::pair<abi::result, errc>>({
      {r::invalid_value, errc::invalid_argument},
      {r::invalid_device, errc::invalid_argument},
      {r::invalid_handle, errc::invalid_argument},
      {r::out_of_memory, errc::out_of_memory},
      {r::not_supported, errc::not_supported},
      {r::no_binary_for_gpu, errc::not_supported},
      {r::not_ready, errc::internal},
      {r::no_device, errc::device_failed},
      {r::not_initialized, errc::device_failed},
      {r::deinitialized, errc::device_failed},
      {r::stub_library, errc::device_failed},
      {r::invalid_context, errc::device_failed},
      {r::illegal_address, errc::device_failed},
      {r::not_permitted, errc::device_failed},
      {r::unknown, errc::device_failed},
      {r::stream_capture_unsupported, errc::invalid_usage},
      {r::stream_capture_invalidated, errc::invalid_usage},
      {r::stream_capture_unjoined, errc::invalid_usage},
      {r::stream_capture_implicit, errc::invalid_usage},
      {r::captured_event, errc::invalid_usage},
      {r::stream_capture_wrong_thread, errc::invalid_usage},
      {899, errc::device_failed},
      {909, errc::device_failed},
      {12345, errc::device_failed},
      {-1, errc::device_failed},
  });
  for (const auto& [code, expected] : table) {
    EXPECT_EQ(errc_of(code), expected) << code;
  }
}

TEST(cuda_driver, check_keeps_number_name_text_and_place) {
  testing::scripted_tables native;
  const driver loaded = native.cuda.driver();
  const error failure = error_of([&] { loaded.check(700, "cuStreamQuery"); });
  EXPECT_EQ(failure.kind(), errc::device_failed);
  EXPECT_EQ(failure.recovery(), recovery::restart_process) << "an illegal address is sticky";
  EXPECT_EQ(failure.native().domain, native_domain::cuda);
  EXPECT_EQ(failure.native().number, 700);
  EXPECT_EQ(failure.native().function, "cuStreamQuery");
  EXPECT_EQ(failure.native().text,
            "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered");
  EXPECT_NE(std::string{failure.where().file_name()}.find("driver_test.cpp"), std::string::npos);
}

TEST(cuda_driver, unknown_number_survives_with_a_text) {
  testing::scripted_tables native;
  const native_code known = native.cuda.driver().describe(12345, "cuInit");
  EXPECT_EQ(known.number, 12345);
  EXPECT_EQ(known.text, "unknown CUDA error: no text");
}

TEST(cuda_driver, success_is_no_error_and_costs_no_call) {
  testing::scripted_tables native;
  const driver loaded = native.cuda.driver();
  EXPECT_NO_THROW(loaded.check(0, "cuInit"));
  loaded.check_noexcept(0, "cuInit");
  EXPECT_TRUE(native.script.calls().empty());
}

TEST(cuda_driver, failures_in_destructors_are_reported_once_for_each_cause) {
  testing::scripted_tables native;
  const testing::log_capture log;
  const driver loaded = native.cuda.driver(log.log());
  loaded.check_noexcept(4, "cuStreamDestroy_v2");
  loaded.check_noexcept(4, "cuStreamDestroy_v2");
  loaded.check_noexcept(400, "cuStreamDestroy_v2");
  loaded.check_noexcept(4, "cuEventDestroy_v2");
  ASSERT_EQ(log.size(), 3U) << log.text();
  EXPECT_EQ(log.messages()[0].level, severity::error);
  EXPECT_NE(log.messages()[0].text.find("cuStreamDestroy_v2 returned 4"), std::string::npos);
}

TEST(cuda_driver, version_and_device_count_are_the_drivers) {
  testing::scripted_tables native;
  native.cuda.device_count = 3;
  const driver loaded = native.cuda.driver();
  EXPECT_EQ(loaded.version(), 13000);
  EXPECT_EQ(loaded.device_count(), 3);
  native.script.answer("cuDeviceGetCount", {abi::results::not_initialized});
  expect_error(
      errc::device_failed, "cuDeviceGetCount returned 3", [&] { return loaded.device_count(); });
}

TEST(cuda_driver, copies_share_the_table) {
  testing::scripted_tables native;
  const driver first = native.cuda.driver();
  const driver second = first;  // NOLINT(performance-unnecessary-copy-initialization): the subject
  EXPECT_EQ(&first.table(), &second.table());
  EXPECT_TRUE(first.file().empty());
}

}  // namespace
}  // namespace spark_comm::cuda
