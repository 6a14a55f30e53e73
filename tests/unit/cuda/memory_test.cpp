// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"
#include "support/log_capture.hpp"
#include "support/scripted_tables.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm::cuda {
namespace {

using testing::expect_error;

class cuda_memory : public ::testing::Test {
 protected:
  testing::scripted_tables native_;
  testing::log_capture log_;
  device device_ = device::open(native_.cuda.driver(log_.log()), 0);
};

TEST_F(cuda_memory, device_buffer_is_freed_once_with_its_device_current) {
  {
    device_buffer first = device_buffer::allocate(device_, 100);
    EXPECT_NE(first.address(), nullptr);
    EXPECT_EQ(first.size_bytes(), 100U);
    EXPECT_EQ(first.owner().ordinal(), 0);
    const device_buffer second = std::move(first);
    EXPECT_EQ(first.address(), nullptr);  // NOLINT(bugprone-use-after-move): the subject
    EXPECT_EQ(first.size_bytes(), 0U);
    EXPECT_EQ(native_.cuda.live_handles(), 1U);
  }
  EXPECT_EQ(native_.cuda.live_handles(), 0U);
  EXPECT_EQ(native_.script.count("cuMemFree_v2"), 1);
  EXPECT_EQ(native_.cuda.current(), nullptr);
  EXPECT_EQ(native_.cuda.capture_mode(), abi::capture_mode::global);
  EXPECT_EQ(log_.size(), 0U) << log_.text();
}

TEST_F(cuda_memory, elements_leave_out_a_rest) {
  const device_buffer buffer = device_buffer::allocate(device_, 10);
  EXPECT_EQ(buffer.as<float>().count_elements, 2U);
  EXPECT_EQ(buffer.as<float>().address, buffer.address());
}

TEST_F(cuda_memory, nothing_is_refused_and_too_much_is_out_of_memory) {
  expect_error(
      errc::invalid_argument, "0 bytes", [&] { return device_buffer::allocate(device_, 0); });
  expect_error(
      errc::invalid_argument, "0 bytes", [&] { return pinned_buffer::allocate(device_, 0); });
  native_.script.answer("cuMemAlloc_v2", {abi::results::out_of_memory});
  native_.script.answer("cuMemHostAlloc", {abi::results::out_of_memory});
  expect_error(
      errc::out_of_memory, "cuMemAlloc_v2", [&] { return device_buffer::allocate(device_, 1); });
  expect_error(
      errc::out_of_memory, "cuMemHostAlloc", [&] { return pinned_buffer::allocate(device_, 1); });
  EXPECT_EQ(native_.script.count("cuMemFree_v2") + native_.script.count("cuMemFreeHost"), 0);
  EXPECT_EQ(native_.cuda.current(), nullptr);
}

TEST_F(cuda_memory, adopted_memory_goes_the_way_it_came) {
  std::vector<void*> freed;
  int memory = 0;
  {
    const auto buffer = device_buffer::adopt(
        device_, &memory, sizeof memory, [&](void* address) { freed.push_back(address); });
    EXPECT_EQ(buffer.address(), &memory);
  }
  EXPECT_EQ(freed, std::vector<void*>{&memory});
  EXPECT_EQ(native_.script.count("cuMemFree_v2"), 0);
  expect_error(errc::invalid_argument, "null", [&] {
    return device_buffer::adopt(device_, nullptr, 4, [](void*) {});
  });
  expect_error(errc::invalid_argument, "0 bytes", [&] {
    return device_buffer::adopt(device_, &memory, 0, [](void*) {});
  });
  expect_error(errc::invalid_argument, "frees it", [&] {
    return device_buffer::adopt(device_, &memory, 4, nullptr);
  });
}

TEST_F(cuda_memory, failed_free_is_reported) {
  int memory = 0;
  SCRIPTED_CALL(api, cuMemAlloc_v2)::handle(native_.script, [&](abi::device_ptr* out, std::size_t) {
    *out = reinterpret_cast<std::uintptr_t>(&memory);
    return 0;
  });
  native_.script.answer("cuMemFree_v2", {abi::results::illegal_address});
  {
    const auto buffer = device_buffer::allocate(device_, 4);
  }
  EXPECT_NE(log_.text().find("cuMemFree_v2 returned 700"), std::string::npos) << log_.text();
  {
    const auto buffer = device_buffer::allocate(device_, 4);
    native_.script.answer("cuCtxGetCurrent", {abi::results::deinitialized});
  }
  EXPECT_NE(log_.text().find("cuCtxGetCurrent returned 4"), std::string::npos) << log_.text();
}

TEST_F(cuda_memory, pinned_memory_has_two_addresses) {
  pinned_buffer first = pinned_buffer::allocate(device_, 64);
  EXPECT_EQ(first.size_bytes(), 64U);
  EXPECT_EQ(first.as<int>(), first.address());
  EXPECT_EQ(first.device_address(), reinterpret_cast<std::uintptr_t>(first.address()));
  const pinned_buffer second = std::move(first);
  // NOLINTNEXTLINE(bugprone-use-after-move): the subject
  expect_error(errc::invalid_usage, "moved from", [&] { return first.device_address(); });
}

TEST_F(cuda_memory, copies_and_fills_check_addresses_and_skip_nothing_at_all) {
  int memory = 0;
  const auto s = stream_ref::default_stream();
  copy_async(device_, nullptr, nullptr, 0, s);
  fill_async(device_, nullptr, 0, 0, s);
  EXPECT_EQ(native_.script.count("cuMemcpyAsync") + native_.script.count("cuMemsetD8Async"), 0);
  expect_error(
      errc::invalid_argument, "destination", [&] { copy_async(device_, nullptr, &memory, 4, s); });
  expect_error(
      errc::invalid_argument, "source", [&] { copy_async(device_, &memory, nullptr, 4, s); });
  expect_error(errc::invalid_argument, "fill", [&] { fill_async(device_, nullptr, 0, 4, s); });
  copy_async(device_, &memory, &memory, 4, s);
  fill_async(device_, &memory, 7, 4, s);
  EXPECT_EQ(native_.script.count("cuMemcpyAsync"), 1);
  EXPECT_EQ(native_.script.count("cuMemsetD8Async"), 1);
  EXPECT_EQ(native_.cuda.current(), nullptr);
}

}  // namespace
}  // namespace spark_comm::cuda
