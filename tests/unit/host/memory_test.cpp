// SPDX-License-Identifier: AGPL-3.0-only
// Device and pinned memory, and work that touches it.
#include "driver_calls.hpp"

#include <spark_comm/cuda/abi.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace spark_comm::host_test {

namespace {

class memory : public driver_fixture {};

constexpr std::size_t mebibyte = std::size_t{1} << 20U;

TEST_F(memory, is_aligned_and_does_not_overlap) {
  std::vector<abi::device_ptr> blocks;
  const std::size_t sizes[] = {1, 255, 256, 257, 4095, 4096, 100000, 3 * mebibyte, 20 * mebibyte};
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t bytes : sizes) {
      abi::device_ptr address = 0;
      ASSERT_EQ(cuMemAlloc_v2(&address, bytes), results::success);
      EXPECT_EQ(address % (bytes >= 4096 ? 4096 : 256), 0U) << bytes;
      abi::device_ptr base = 0;
      std::size_t length = 0;
      EXPECT_EQ(cuMemGetAddressRange_v2(&base, &length, address + bytes - 1), results::success);
      EXPECT_EQ(base, address);
      EXPECT_EQ(length, bytes);
      blocks.push_back(address);
    }
  }
  std::vector<abi::device_ptr> sorted = blocks;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
  for (const abi::device_ptr block : blocks) {
    EXPECT_EQ(cuMemFree_v2(block), results::success);
  }
}

TEST_F(memory, is_used_again_after_it_was_freed) {
  abi::device_ptr first = 0;
  ASSERT_EQ(cuMemAlloc_v2(&first, 1000), results::success);
  EXPECT_EQ(cuMemFree_v2(first), results::success);
  abi::device_ptr second = 0;
  ASSERT_EQ(cuMemAlloc_v2(&second, 1000), results::success);
  EXPECT_EQ(second, first);
  EXPECT_EQ(cuMemFree_v2(second), results::success);
}

TEST_F(memory, freed_before_its_work_is_over_stays_until_then) {
  abi::stream s = make_stream();
  gate door;
  auto* word = allocate<std::uint32_t>(1);
  door.block(s);
  ASSERT_EQ(cuStreamWriteValue32_v2(s, address_of(word), 9, 0), results::success);
  free_memory(word);
  auto* next = allocate<std::uint32_t>(1);
  EXPECT_NE(next, word);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
  auto* another = allocate<std::uint32_t>(1);
  EXPECT_NE(another, word);
  door.open();
  free_memory(next);
  free_memory(another);
}

TEST_F(memory, only_the_start_of_an_allocation_can_be_freed) {
  auto* bytes = allocate<char>(1000);
  int elsewhere = 0;
  EXPECT_EQ(cuMemFree_v2(address_of(bytes + 256)), results::invalid_value);
  EXPECT_EQ(cuMemFree_v2(address_of(&elsewhere)), results::invalid_value);
  EXPECT_EQ(cuMemFreeHost(bytes), results::invalid_value);
  EXPECT_EQ(cuMemFree_v2(0), results::success);
  free_memory(bytes);
  EXPECT_EQ(cuMemFree_v2(address_of(bytes)), results::invalid_value);
}

TEST_F(memory, refuses_what_does_not_fit) {
  abi::device_ptr address = 0;
  EXPECT_EQ(cuMemAlloc_v2(&address, std::size_t{1} << 50U), results::out_of_memory);
  EXPECT_EQ(cuMemAlloc_v2(&address, SIZE_MAX), results::out_of_memory);
  EXPECT_EQ(cuMemAlloc_v2(&address, 0), results::invalid_value);
  EXPECT_EQ(cuMemAlloc_v2(nullptr, 16), results::invalid_value);
}

TEST_F(memory, tells_what_an_address_is) {
  auto* device = allocate<char>(64);
  void* pinned = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&pinned, 64, abi::flags::host_alloc_portable), results::success);
  int local = 0;
  unsigned int type = 0;
  int ordinal = -1;
  using namespace abi::pointer_attribute;
  EXPECT_EQ(cuPointerGetAttribute(&type, memory_type, address_of(device + 63)), results::success);
  EXPECT_EQ(type, 2U);
  EXPECT_EQ(cuPointerGetAttribute(&type, memory_type, address_of(pinned)), results::success);
  EXPECT_EQ(type, 1U);
  EXPECT_EQ(cuPointerGetAttribute(&ordinal, device_ordinal, address_of(device)), results::success);
  EXPECT_EQ(ordinal, 0);
  EXPECT_EQ(cuPointerGetAttribute(&type, memory_type, address_of(&local)), results::invalid_value);
  EXPECT_EQ(cuPointerGetAttribute(&type, memory_type, address_of(device + 64)),
            results::invalid_value);
  EXPECT_EQ(cuMemGetAddressRange_v2(nullptr, nullptr, address_of(&local)), results::not_found);
  abi::device_ptr seen = 0;
  EXPECT_EQ(cuMemHostGetDevicePointer_v2(&seen, pinned, 0), results::success);
  EXPECT_EQ(seen, address_of(pinned));
  EXPECT_EQ(cuMemHostGetDevicePointer_v2(&seen, device, 0), results::invalid_value);
  EXPECT_EQ(cuMemFreeHost(pinned), results::success);
  free_memory(device);
}

TEST_F(memory, tells_how_much_there_is) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  EXPECT_EQ(cuMemGetInfo_v2(&free_bytes, &total_bytes), results::success);
  EXPECT_GT(free_bytes, 0U);
  EXPECT_GE(total_bytes, free_bytes);
}

TEST_F(memory, is_filled_and_copied_in_stream_order) {
  abi::stream s = make_stream();
  constexpr std::size_t count = 3 * mebibyte / sizeof(std::uint32_t);
  auto* from = allocate<std::uint32_t>(count);
  auto* to = allocate<std::uint32_t>(count);
  EXPECT_EQ(cuMemsetD8Async(address_of(from), 0x11, count * sizeof(*from), s), results::success);
  EXPECT_EQ(cuMemsetD32Async(address_of(from + 1), 0xabcd1234, count - 2, s), results::success);
  EXPECT_EQ(cuMemcpyAsync(address_of(to), address_of(from), count * sizeof(*from), s),
            results::success);
  EXPECT_EQ(cuStreamSynchronize(s), results::success);
  EXPECT_EQ(to[0], 0x11111111U);
  EXPECT_EQ(to[1], 0xabcd1234U);
  EXPECT_EQ(to[count - 2], 0xabcd1234U);
  EXPECT_EQ(to[count - 1], 0x11111111U);
  free_memory(from);
  free_memory(to);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

TEST_F(memory, of_the_host_may_be_reused_after_a_copy_call) {
  abi::stream s = make_stream();
  gate door;
  auto* device = allocate<int>(1);
  int value = 41;
  door.block(s);
  EXPECT_EQ(cuMemcpyAsync(address_of(device), address_of(&value), sizeof(value), s),
            results::success);
  value = 0;
  door.open();
  EXPECT_EQ(cuStreamSynchronize(s), results::success);
  EXPECT_EQ(*device, 41);
  // Copies to pageable memory are over when the call returns.
  EXPECT_EQ(cuMemcpyAsync(address_of(&value), address_of(device), sizeof(value), s),
            results::success);
  EXPECT_EQ(value, 41);
  std::vector<char> large(2 * mebibyte, 'x');
  auto* large_device = allocate<char>(large.size());
  EXPECT_EQ(cuMemcpyAsync(address_of(large_device), address_of(large.data()), large.size(), s),
            results::success);
  std::fill(large.begin(), large.end(), 'y');
  EXPECT_EQ(cuStreamSynchronize(s), results::success);
  EXPECT_EQ(large_device[large.size() - 1], 'x');
  free_memory(device);
  free_memory(large_device);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

TEST_F(memory, work_with_wrong_arguments_is_refused) {
  auto* words = allocate<std::uint32_t>(4);
  const abi::device_ptr address = address_of(words);
  EXPECT_EQ(cuMemcpyAsync(0, address, 4, nullptr), results::invalid_value);
  EXPECT_EQ(cuMemcpyAsync(address, 0, 4, nullptr), results::invalid_value);
  EXPECT_EQ(cuMemcpyAsync(0, 0, 0, nullptr), results::success);
  EXPECT_EQ(cuMemsetD8Async(0, 1, 1, nullptr), results::invalid_value);
  EXPECT_EQ(cuMemsetD32Async(address + 1, 1, 1, nullptr), results::invalid_value);
  EXPECT_EQ(cuStreamWriteValue32_v2(nullptr, address + 2, 1, 0), results::invalid_value);
  EXPECT_EQ(cuLaunchHostFunc(nullptr, nullptr, nullptr), results::invalid_value);
  free_memory(words);
}

TEST_F(memory, handles_of_this_process_and_garbage_open_nothing) {
  auto* bytes = allocate<char>(64);
  abi::ipc_mem_handle handle{};
  abi::device_ptr mapped = 0;
  EXPECT_EQ(cuIpcGetMemHandle(&handle, address_of(bytes)), results::success);
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&mapped, handle, 1), results::invalid_context);
  std::memset(&handle, 0x5a, sizeof(handle));
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&mapped, handle, 1), results::invalid_value);
  int local = 0;
  EXPECT_EQ(cuIpcGetMemHandle(&handle, address_of(&local)), results::invalid_value);
  EXPECT_EQ(cuIpcCloseMemHandle(address_of(bytes)), results::invalid_value);
  free_memory(bytes);
}

}  // namespace

}  // namespace spark_comm::host_test
