// SPDX-License-Identifier: AGPL-3.0-only
// Initialisation, devices, contexts and the list of exported symbols.
#include "driver_calls.hpp"

#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/api.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <set>
#include <string>
#include <thread>

namespace spark_comm::host_test {

namespace {

class driver : public driver_fixture {};

TEST_F(driver, exports_every_call_of_the_table){
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define SPARK_COMM_EXPECT_SYMBOL(name, arguments) \
  EXPECT_NE(dlsym(RTLD_DEFAULT, #name), nullptr) << #name;
    SPARK_COMM_CUDA_FUNCTIONS(SPARK_COMM_EXPECT_SYMBOL)
#undef SPARK_COMM_EXPECT_SYMBOL
}

TEST_F(driver, says_its_version_and_refuses_unknown_flags) {
  int version = 0;
  EXPECT_EQ(cuDriverGetVersion(&version), results::success);
  EXPECT_EQ(version, 13000);
  EXPECT_EQ(cuDriverGetVersion(nullptr), results::invalid_value);
  EXPECT_EQ(cuInit(1), results::invalid_value);
  EXPECT_EQ(cuInit(0), results::success);
}

TEST_F(driver, names_the_results) {
  const char* text = nullptr;
  EXPECT_EQ(cuGetErrorName(results::stream_capture_invalidated, &text), results::success);
  EXPECT_STREQ(text, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
  EXPECT_EQ(cuGetErrorString(results::not_ready, &text), results::success);
  EXPECT_STREQ(text, "not ready");
  EXPECT_EQ(cuGetErrorName(12345, &text), results::invalid_value);
  EXPECT_EQ(text, nullptr);
}

TEST_F(driver, describes_its_devices) {
  int count = 0;
  ASSERT_EQ(cuDeviceGetCount(&count), results::success);
  ASSERT_GE(count, 2);
  std::set<std::string> ids;
  std::set<std::string> buses;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    abi::device device = -1;
    ASSERT_EQ(cuDeviceGet(&device, ordinal), results::success);
    std::array<char, 64> name{};
    ASSERT_EQ(cuDeviceGetName(name.data(), name.size(), device), results::success);
    EXPECT_STREQ(name.data(), "spark_comm host device");
    abi::uuid id{};
    ASSERT_EQ(cuDeviceGetUuid_v2(&id, device), results::success);
    ids.emplace(reinterpret_cast<const char*>(id.bytes), sizeof(id.bytes));
    ASSERT_EQ(cuDeviceGetPCIBusId(name.data(), name.size(), device), results::success);
    buses.emplace(name.data());
    std::size_t bytes = 0;
    ASSERT_EQ(cuDeviceTotalMem_v2(&bytes, device), results::success);
    EXPECT_GT(bytes, std::size_t{1} << 20U);
  }
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(buses.size(), static_cast<std::size_t>(count));
  abi::device none = -1;
  EXPECT_EQ(cuDeviceGet(&none, count), results::invalid_device);
  EXPECT_EQ(cuDeviceGet(&none, -1), results::invalid_device);
}

TEST_F(driver, cuts_a_name_to_the_room_given) {
  std::array<char, 6> name{};
  EXPECT_EQ(cuDeviceGetName(name.data(), name.size(), 0), results::success);
  EXPECT_STREQ(name.data(), "spark");
  EXPECT_EQ(cuDeviceGetName(name.data(), 0, 0), results::invalid_value);
}

TEST_F(driver, answers_attributes) {
  int value = -1;
  EXPECT_EQ(cuDeviceGetAttribute(&value, abi::device_attribute::multiprocessor_count, 0),
            results::success);
  EXPECT_GE(value, 1);
  EXPECT_EQ(
      cuDeviceGetAttribute(&value, abi::device_attribute::virtual_memory_management_supported, 0),
      results::success);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cuDeviceGetAttribute(&value, 0, 0), results::invalid_value);
  EXPECT_EQ(cuDeviceGetAttribute(&value, 100000, 0), results::invalid_value);
  EXPECT_EQ(cuDeviceGetAttribute(&value, 16, 99), results::invalid_device);
}

TEST_F(driver, peers_reach_each_other_but_not_themselves) {
  int can = -1;
  EXPECT_EQ(cuDeviceCanAccessPeer(&can, 0, 1), results::success);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(cuDeviceCanAccessPeer(&can, 1, 1), results::success);
  EXPECT_EQ(can, 0);
  abi::context peer = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&peer, 3), results::success);
  EXPECT_EQ(cuCtxEnablePeerAccess(peer, 0), results::success);
  EXPECT_EQ(cuCtxEnablePeerAccess(peer, 0), results::peer_access_already_enabled);
  EXPECT_EQ(cuCtxEnablePeerAccess(context_, 0), results::invalid_context);
  EXPECT_EQ(cuCtxEnablePeerAccess(peer, 1), results::invalid_value);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(3), results::success);
}

TEST_F(driver, contexts_are_a_stack_of_each_thread) {
  abi::context other = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), results::success);
  abi::device device = -1;
  EXPECT_EQ(cuCtxPushCurrent_v2(other), results::success);
  EXPECT_EQ(cuCtxGetDevice(&device), results::success);
  EXPECT_EQ(device, 1);
  std::thread{[] {
    abi::context current = nullptr;
    abi::device none = -1;
    EXPECT_EQ(cuCtxGetCurrent(&current), results::success);
    EXPECT_EQ(current, nullptr);
    EXPECT_EQ(cuCtxGetDevice(&none), results::invalid_context);
    EXPECT_EQ(cuCtxPopCurrent_v2(&current), results::invalid_context);
  }}.join();
  abi::context popped = nullptr;
  EXPECT_EQ(cuCtxPopCurrent_v2(&popped), results::success);
  EXPECT_EQ(popped, other);
  EXPECT_EQ(cuCtxGetDevice(&device), results::success);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cuCtxSetCurrent(other), results::success);
  EXPECT_EQ(cuCtxGetDevice(&device), results::success);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cuCtxSetCurrent(context_), results::success);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(1), results::success);
}

TEST_F(driver, primary_contexts_are_counted) {
  abi::context context = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 2), results::success);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 2), results::success);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(2), results::success);
  EXPECT_EQ(cuCtxPushCurrent_v2(context), results::success);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(2), results::success);
  abi::device device = -1;
  EXPECT_EQ(cuCtxGetDevice(&device), 709);  // context is destroyed
  EXPECT_EQ(cuCtxPopCurrent_v2(nullptr), results::success);
  EXPECT_EQ(cuCtxPushCurrent_v2(context), results::invalid_context);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(2), results::invalid_context);
}

TEST_F(driver, a_context_that_is_none_is_refused) {
  int somewhere = 0;
  auto* none = reinterpret_cast<abi::context>(&somewhere);
  EXPECT_EQ(cuCtxSetCurrent(none), results::invalid_context);
  EXPECT_EQ(cuCtxPushCurrent_v2(none), results::invalid_context);
  EXPECT_EQ(cuCtxPushCurrent_v2(nullptr), results::invalid_context);
}

TEST_F(driver, calls_without_a_context_are_refused) {
  ASSERT_EQ(cuCtxPopCurrent_v2(nullptr), results::success);
  abi::device_ptr address = 0;
  abi::stream s = nullptr;
  abi::event e = nullptr;
  EXPECT_EQ(cuMemAlloc_v2(&address, 16), results::invalid_context);
  EXPECT_EQ(cuStreamCreate(&s, 0), results::invalid_context);
  EXPECT_EQ(cuEventCreate(&e, 0), results::invalid_context);
  EXPECT_EQ(cuStreamSynchronize(nullptr), results::invalid_context);
  ASSERT_EQ(cuCtxPushCurrent_v2(context_), results::success);
}

}  // namespace

}  // namespace spark_comm::host_test
