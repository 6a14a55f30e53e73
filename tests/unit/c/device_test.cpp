// SPDX-License-Identifier: AGPL-3.0-only
// Devices, streams, events and memory of the C interface, on the host runtime.
#include "support/c_handles.hpp"

#include <spark_comm/spark_comm.h>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace spark_comm {
namespace {

using testing::c_buffer;
using testing::c_device;
using testing::c_event;
using testing::c_pinned;
using testing::c_runtime;
using testing::c_stream;
using testing::expect_c_error;
using testing::expect_ok;
using testing::load_host;
using testing::made_by;

constexpr std::int64_t second = 1'000'000'000;

class c_device_of_the_host : public ::testing::Test {
 protected:
  c_runtime loaded_ = load_host();
  c_device device_ = made_by<c_device>([this](auto** made, auto** failure) {
    return spark_comm_device_open(loaded_.get(), 0, made, failure);
  });
  c_stream stream_ = made_by<c_stream>([this](auto** made, auto** failure) {
    return spark_comm_stream_create(device_.get(), made, failure);
  });

  spark_comm_native_stream native() const { return spark_comm_stream_native(stream_.get()); }

  void drain() const {
    spark_comm_progress progress = SPARK_COMM_PENDING;
    expect_ok([&](auto** failure) {
      return spark_comm_device_wait(device_.get(), native(), 10 * second, &progress, failure);
    });
    EXPECT_EQ(progress, SPARK_COMM_DONE);
    progress = SPARK_COMM_PENDING;
    expect_ok([&](auto** failure) {
      return spark_comm_device_poll(device_.get(), native(), &progress, failure);
    });
    EXPECT_EQ(progress, SPARK_COMM_DONE);
  }
};

TEST_F(c_device_of_the_host, is_described) {
  spark_comm_device_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(expect_ok(
      [&](auto** failure) { return spark_comm_device_describe(device_.get(), &info, failure); }));
  EXPECT_EQ(info.ordinal, 0);
  EXPECT_NE(std::string{info.name}, "");
  EXPECT_GT(info.total_bytes, 0U);
  EXPECT_LE(info.free_bytes, info.total_bytes);
}

TEST_F(c_device_of_the_host, copies_and_fills_device_memory) {
  const c_buffer buffer = made_by<c_buffer>([this](auto** made, auto** failure) {
    return spark_comm_device_buffer_allocate(device_.get(), 64, made, failure);
  });
  EXPECT_EQ(spark_comm_device_buffer_size(buffer.get()), 64U);
  void* const address = spark_comm_device_buffer_address(buffer.get());
  std::array<std::uint8_t, 64> out{};
  expect_ok([&](auto** failure) {
    return spark_comm_fill_async(device_.get(), address, 7, out.size(), native(), failure);
  });
  expect_ok([&](auto** failure) {
    return spark_comm_copy_async(device_.get(), out.data(), address, out.size(), native(), failure);
  });
  drain();
  EXPECT_EQ(out.front(), 7);
  EXPECT_EQ(out.back(), 7);
}

TEST_F(c_device_of_the_host, pins_host_memory) {
  const c_pinned buffer = made_by<c_pinned>([this](auto** made, auto** failure) {
    return spark_comm_pinned_buffer_allocate(device_.get(), 4096, made, failure);
  });
  EXPECT_EQ(spark_comm_pinned_buffer_size(buffer.get()), 4096U);
  EXPECT_NE(spark_comm_pinned_buffer_address(buffer.get()), nullptr);
  std::uint64_t address = 0;
  expect_ok([&](auto** failure) {
    return spark_comm_pinned_buffer_device_address(buffer.get(), &address, failure);
  });
  EXPECT_NE(address, 0U);
}

TEST_F(c_device_of_the_host, times_between_events_and_orders_streams_by_them) {
  const auto timed_event = [this] {
    return made_by<c_event>([this](auto** made, auto** failure) {
      return spark_comm_event_create(device_.get(), 1, made, failure);
    });
  };
  const c_event start = timed_event();
  const c_event end = timed_event();
  EXPECT_NE(spark_comm_event_native(start.get()), nullptr);
  spark_comm_progress progress = SPARK_COMM_PENDING;
  expect_c_error(SPARK_COMM_INVALID_USAGE, "never recorded", [&](auto** failure) {
    return spark_comm_event_poll(start.get(), &progress, failure);
  });
  for (const c_event* each : {&start, &end}) {
    expect_ok(
        [&](auto** failure) { return spark_comm_event_record(each->get(), native(), failure); });
  }
  const c_stream later = made_by<c_stream>([this](auto** made, auto** failure) {
    return spark_comm_stream_create(device_.get(), made, failure);
  });
  expect_ok(
      [&](auto** failure) { return spark_comm_stream_wait_for(later.get(), end.get(), failure); });
  expect_ok([&](auto** failure) {
    return spark_comm_event_wait(end.get(), 10 * second, &progress, failure);
  });
  EXPECT_EQ(progress, SPARK_COMM_DONE);
  float milliseconds = -1;
  expect_ok([&](auto** failure) {
    return spark_comm_event_elapsed(start.get(), end.get(), &milliseconds, failure);
  });
  EXPECT_GE(milliseconds, 0);
}

TEST_F(c_device_of_the_host, refuses_what_is_wrong_by_name) {
  expect_c_error(SPARK_COMM_INVALID_ARGUMENT, "the buffer", [](auto** failure) {
    std::uint64_t address = 0;
    return spark_comm_pinned_buffer_device_address(nullptr, &address, failure);
  });
  expect_c_error(SPARK_COMM_INVALID_ARGUMENT, "negative", [this](auto** failure) {
    spark_comm_progress progress = SPARK_COMM_PENDING;
    return spark_comm_device_wait(device_.get(), native(), -1, &progress, failure);
  });
  expect_c_error(SPARK_COMM_INVALID_ARGUMENT, "progress is null", [this](auto** failure) {
    return spark_comm_device_poll(device_.get(), native(), nullptr, failure);
  });
  spark_comm_device_buffer* none = nullptr;
  expect_c_error(SPARK_COMM_INVALID_ARGUMENT, "0 bytes", [&](auto** failure) {
    return spark_comm_device_buffer_allocate(device_.get(), 0, &none, failure);
  });
  EXPECT_EQ(none, nullptr);
}

TEST(c_null_handles, are_answered_and_destroyed_quietly) {
  EXPECT_EQ(spark_comm_stream_native(nullptr), nullptr);
  EXPECT_EQ(spark_comm_event_native(nullptr), nullptr);
  EXPECT_EQ(spark_comm_device_buffer_address(nullptr), nullptr);
  EXPECT_EQ(spark_comm_device_buffer_size(nullptr), 0U);
  EXPECT_EQ(spark_comm_pinned_buffer_address(nullptr), nullptr);
  EXPECT_EQ(spark_comm_pinned_buffer_size(nullptr), 0U);
  EXPECT_EQ(spark_comm_communicator_rank(nullptr), -1);
  EXPECT_EQ(spark_comm_communicator_world_size(nullptr), 0);
  EXPECT_STREQ(spark_comm_communicator_name(nullptr), "");
  EXPECT_EQ(spark_comm_communicator_state(nullptr), SPARK_COMM_STATE_CLOSED);
  EXPECT_EQ(spark_comm_communicator_sequence(nullptr), 0U);
  EXPECT_EQ(spark_comm_communicator_generation(nullptr), 0U);
  EXPECT_EQ(spark_comm_communicator_device(nullptr), nullptr);
  spark_comm_communicator_abort(nullptr);
  spark_comm_communicator_destroy(nullptr);
  spark_comm_group_drop(nullptr);
  spark_comm_overlapped_destroy(nullptr);
  spark_comm_event_destroy(nullptr);
  spark_comm_stream_destroy(nullptr);
  spark_comm_device_buffer_destroy(nullptr);
  spark_comm_pinned_buffer_destroy(nullptr);
  spark_comm_device_destroy(nullptr);
  spark_comm_runtime_destroy(nullptr);
}

}  // namespace
}  // namespace spark_comm
