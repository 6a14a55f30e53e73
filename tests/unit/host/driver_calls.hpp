// SPDX-License-Identifier: AGPL-3.0-only
// The exported driver calls of the host runtime, and small helpers around them, for its tests.
#pragma once

#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/api.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace spark_comm::cuda {

extern "C" {

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): one list for table and tests
#define SPARK_COMM_DECLARE_CALL(name, arguments) abi::result name arguments;
SPARK_COMM_CUDA_FUNCTIONS(SPARK_COMM_DECLARE_CALL)
#undef SPARK_COMM_DECLARE_CALL

// Not called by the library; the host runtime has them for other programs.
abi::result cuCtxPushCurrent_v2(abi::context context);
abi::result cuCtxPopCurrent_v2(abi::context* context);

int spark_comm_host_live_handles(int kind);

}  // extern "C"

}  // namespace spark_comm::cuda

namespace spark_comm::host_test {

using namespace spark_comm::cuda;  // NOLINT(google-build-using-namespace): the calls under test

namespace results = abi::results;
using std::chrono::milliseconds;

enum live_kind : std::uint8_t {
  live_streams,
  live_events,
  live_graphs,
  live_executables,
  live_modules,
  live_device_memory,
  live_pinned_memory,
  live_imported_memory,
  live_contexts,
  live_kinds
};

/// Initialised driver, device 0 current; checks at the end that nothing is left alive.
class driver_fixture : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), results::success);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), results::success);
    ASSERT_EQ(cuCtxPushCurrent_v2(context_), results::success);
  }

  void TearDown() override {
    EXPECT_EQ(cuCtxPopCurrent_v2(nullptr), results::success);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), results::success);
    for (int kind = 0; kind < live_kinds; ++kind) {
      EXPECT_EQ(spark_comm_host_live_handles(kind), 0) << "kind " << kind;
    }
  }

  static abi::stream make_stream() {
    abi::stream made = nullptr;
    EXPECT_EQ(cuStreamCreate(&made, abi::flags::stream_non_blocking), results::success);
    return made;
  }

  static abi::event make_event(unsigned int flags = abi::flags::event_disable_timing) {
    abi::event made = nullptr;
    EXPECT_EQ(cuEventCreate(&made, flags), results::success);
    return made;
  }

  template <typename T>
  static T* allocate(std::size_t count) {
    abi::device_ptr address = 0;
    EXPECT_EQ(cuMemAlloc_v2(&address, count * sizeof(T)), results::success);
    return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr)
  }

  static abi::device_ptr address_of(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
  }

  static void free_memory(const void* pointer) {
    EXPECT_EQ(cuMemFree_v2(address_of(pointer)), results::success);
  }

  abi::context context_ = nullptr;
};

/// A host function that holds its stream until it is opened.
class gate {
 public:
  void block(abi::stream s) { EXPECT_EQ(cuLaunchHostFunc(s, &wait, this), results::success); }

  void open() { is_open_.store(true, std::memory_order_release); }

  [[nodiscard]] bool is_entered() const { return is_entered_.load(std::memory_order_acquire); }

 private:
  static void wait(void* self) {
    auto& mine = *static_cast<gate*>(self);
    mine.is_entered_.store(true, std::memory_order_release);
    while (!mine.is_open_.load(std::memory_order_acquire)) {
      std::this_thread::yield();
    }
  }

  std::atomic<bool> is_entered_ = false;
  std::atomic<bool> is_open_ = false;
};

/// Waits for `condition`, at most ten seconds.
template <typename Condition>
[[nodiscard]] bool eventually(const Condition& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

}  // namespace spark_comm::host_test
