// SPDX-License-Identifier: AGPL-3.0-only
// Streams, events, memory and the current device, on each runtime.
#include "support/cuda_runtimes.hpp"
#include "support/expect_error.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace spark_comm::cuda {
namespace {

using namespace std::chrono_literals;
using testing::expect_error;
using testing::stream_gate;

constexpr auto long_enough = 20s;
constexpr std::size_t some_bytes = 4096;

using streams_and_events = testing::cuda_contract;
using current_device = testing::cuda_contract;
using device_memory = testing::cuda_contract;

INSTANTIATE_TEST_SUITE_P(runtime,
                         streams_and_events,
                         ::testing::ValuesIn(testing::cuda_runtimes()),
                         testing::name_of_runtime);
INSTANTIATE_TEST_SUITE_P(runtime,
                         current_device,
                         ::testing::ValuesIn(testing::cuda_runtimes()),
                         testing::name_of_runtime);
INSTANTIATE_TEST_SUITE_P(runtime,
                         device_memory,
                         ::testing::ValuesIn(testing::cuda_runtimes()),
                         testing::name_of_runtime);

bool all_are(const pinned_buffer& memory, std::uint8_t value) {
  const auto* const first = memory.as<std::uint8_t>();
  return std::all_of(
      first, first + memory.size_bytes(), [value](std::uint8_t byte) { return byte == value; });
}

TEST_P(streams_and_events, stream_runs_its_work_in_order_and_not_on_the_callers_time) {
  const stream s = device_.create_stream();
  const auto memory = device_buffer::allocate(device_, some_bytes);
  const auto result = pinned_buffer::allocate(device_, some_bytes);
  stream_gate gate;
  gate.hold(s);
  for (const std::uint8_t value : {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{3}}) {
    fill_async(device_, memory.address(), value, some_bytes, s);
  }
  copy_async(device_, result.address(), memory.address(), some_bytes, s);
  EXPECT_EQ(s.poll(), progress::pending);
  gate.open();
  ASSERT_EQ(s.wait(long_enough), wait_result::done);
  EXPECT_EQ(s.poll(), progress::done);
  EXPECT_TRUE(all_are(result, 3));
}

TEST_P(streams_and_events, event_orders_two_streams) {
  const stream producer = device_.create_stream();
  const stream consumer = device_.create_stream();
  event made = device_.create_event();
  const auto memory = device_buffer::allocate(device_, some_bytes);
  const auto result = pinned_buffer::allocate(device_, some_bytes);
  fill_async(device_, memory.address(), 1, some_bytes, producer);
  ASSERT_EQ(producer.wait(long_enough), wait_result::done);
  stream_gate gate;
  gate.hold(producer);
  fill_async(device_, memory.address(), 2, some_bytes, producer);
  made.record(producer);
  consumer.wait_for(made);
  copy_async(device_, result.address(), memory.address(), some_bytes, consumer);
  EXPECT_EQ(made.poll(), progress::pending);
  EXPECT_EQ(consumer.poll(), progress::pending);
  EXPECT_EQ(consumer.wait(20ms), wait_result::timed_out);
  gate.open();
  ASSERT_EQ(consumer.wait(long_enough), wait_result::done);
  EXPECT_EQ(made.poll(), progress::done);
  EXPECT_TRUE(all_are(result, 2));
}

TEST_P(streams_and_events, streams_do_not_wait_for_each_other_or_for_the_default_stream) {
  const stream held = device_.create_stream();
  const stream free = device_.create_stream();
  stream_gate gate;
  gate.hold(held);
  const auto memory = device_buffer::allocate(device_, some_bytes);
  fill_async(device_, memory.address(), 1, some_bytes, free);
  EXPECT_EQ(free.wait(long_enough), wait_result::done);
  EXPECT_EQ(device_.wait(stream_ref::default_stream(), long_enough), wait_result::done);
  EXPECT_EQ(held.poll(), progress::pending);
}

TEST_P(streams_and_events, wait_ends_at_its_deadline_and_can_be_repeated) {
  const stream s = device_.create_stream();
  event point = device_.create_event();
  stream_gate gate;
  gate.hold(s);
  point.record(s);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(s.wait(50ms), wait_result::timed_out);
  EXPECT_EQ(point.wait(50ms), wait_result::timed_out);
  EXPECT_EQ(s.wait(0ns), wait_result::timed_out);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, 100ms);
  EXPECT_LT(took, long_enough);
  gate.open();
  EXPECT_EQ(point.wait(long_enough), wait_result::done);
  EXPECT_EQ(s.wait(long_enough), wait_result::done);
}

TEST_P(streams_and_events, never_recorded_event_is_not_done) {
  const stream s = device_.create_stream();
  const event point = device_.create_event();
  expect_error(errc::invalid_usage, "never recorded", [&] { return point.poll(); });
  expect_error(errc::invalid_usage, "never recorded", [&] { return point.wait(1s); });
  expect_error(errc::invalid_usage, "never recorded", [&] { s.wait_for(point); });
  EXPECT_EQ(s.poll(), progress::done);
}

TEST_P(streams_and_events, event_means_its_latest_record) {
  const stream s = device_.create_stream();
  event point = device_.create_event();
  point.record(s);
  EXPECT_EQ(point.wait(long_enough), wait_result::done);
  stream_gate gate;
  gate.hold(s);
  point.record(s);
  EXPECT_EQ(point.poll(), progress::pending);
  gate.open();
  EXPECT_EQ(point.wait(long_enough), wait_result::done);
}

TEST_P(streams_and_events, time_between_two_reached_points) {
  const stream s = device_.create_stream();
  event start = device_.create_timed_event();
  event end = device_.create_timed_event();
  start.record(s);
  s.launch_host([](void*) { std::this_thread::sleep_for(20ms); }, nullptr);
  end.record(s);
  ASSERT_EQ(end.wait(long_enough), wait_result::done);
  const float milliseconds = event::elapsed_ms(start, end);
  EXPECT_GE(milliseconds, 19.0F);
  EXPECT_LT(milliseconds, 10000.0F);
  event untimed = device_.create_event();
  untimed.record(s);
  ASSERT_EQ(untimed.wait(long_enough), wait_result::done);
  expect_error(errc::invalid_argument, "cuEventElapsedTime", [&] {
    return event::elapsed_ms(start, untimed);
  });
}

TEST_P(streams_and_events, destroying_a_busy_stream_does_not_wait_for_it) {
  stream_gate gate;
  const stream other = device_.create_stream();
  event point = device_.create_event();
  const auto begin = std::chrono::steady_clock::now();
  {
    const stream busy = device_.create_stream();
    gate.hold(busy);
    point.record(busy);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, long_enough);
  EXPECT_EQ(point.poll(), progress::pending);
  gate.open();
  EXPECT_EQ(point.wait(long_enough), wait_result::done);
}

TEST_P(streams_and_events, not_ready_leaves_no_error_behind) {
  const stream s = device_.create_stream();
  stream_gate gate;
  gate.hold(s);
  EXPECT_EQ(s.poll(), progress::pending);
  EXPECT_NO_THROW(static_cast<void>(device_.create_stream()));
  EXPECT_NO_THROW(s.launch_host([](void*) {}, nullptr));
  gate.open();
  EXPECT_EQ(s.wait(long_enough), wait_result::done);
}

TEST_P(current_device, device_that_is_not_there_is_refused) {
  const int count = driver_.device_count();
  expect_error(errc::invalid_argument,
               "device " + std::to_string(count) + " of " + std::to_string(count) + " visible",
               [&] { return device::open(driver_, count); });
  EXPECT_EQ(current(), nullptr);
}

TEST_P(current_device, info_tells_one_device_from_another) {
  const device_info known = device_.info();
  EXPECT_EQ(known.ordinal, 0);
  EXPECT_FALSE(known.name.empty());
  EXPECT_FALSE(known.pci_bus_id.empty());
  EXPECT_GT(known.total_bytes, 0U);
  EXPECT_GT(known.multiprocessors, 0);
  EXPECT_TRUE(std::ranges::any_of(known.uuid, [](std::uint8_t byte) { return byte != 0; }));
  EXPECT_GT(device_.memory().free_bytes, 0U);
  if (driver_.device_count() > 1) {
    EXPECT_NE(device::open(driver_, 1).info().uuid, known.uuid);
  }
}

// Every call, also one that fails, leaves the caller's current device alone: none, or another one.
TEST_P(current_device, is_the_callers_after_every_call) {
  const stream s = device_.create_stream();
  event point = device_.create_event();
  const auto memory = device_buffer::allocate(device_, some_bytes);
  const auto pinned = pinned_buffer::allocate(device_, some_bytes);
  const std::vector<std::function<void()>> calls = {
      [&] { static_cast<void>(device::open(driver_, 0)); },
      [&] { static_cast<void>(device_.info()); },
      [&] { static_cast<void>(device_.memory()); },
      [&] { static_cast<void>(device_.create_stream()); },
      [&] { static_cast<void>(device_.create_event()); },
      [&] { static_cast<void>(device_.create_timed_event()); },
      [&] { static_cast<void>(device_.is_capturing(s)); },
      [&] { static_cast<void>(device_.poll(stream_ref::default_stream())); },
      [&] { static_cast<void>(s.wait(long_enough)); },
      [&] { s.launch_host([](void*) {}, nullptr); },
      [&] { point.record(s); },
      [&] { static_cast<void>(point.wait(long_enough)); },
      [&] { s.wait_for(point); },
      [&] { static_cast<void>(device_buffer::allocate(device_, some_bytes)); },
      [&] { static_cast<void>(pinned_buffer::allocate(device_, some_bytes)); },
      [&] { static_cast<void>(pinned.device_address()); },
      [&] { fill_async(device_, memory.address(), 1, some_bytes, s); },
      [&] { copy_async(device_, pinned.address(), memory.address(), some_bytes, s); },
  };
  const std::vector<std::function<void()>> failing = {
      [&] { static_cast<void>(device::open(driver_, 1000)); },
      [&] { static_cast<void>(device_buffer::allocate(device_, std::size_t{1} << 60U)); },
      [&] { static_cast<void>(pinned_buffer::allocate(device_, std::size_t{1} << 60U)); },
      [&] { static_cast<void>(device_.create_event().poll()); },
      [&] { copy_async(device_, nullptr, memory.address(), 1, s); },
  };
  const auto run_all = [&](abi::context expected) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_NO_THROW(calls[i]()) << i;
      EXPECT_EQ(current(), expected) << i;
    }
    for (std::size_t i = 0; i < failing.size(); ++i) {
      EXPECT_THROW(failing[i](), error) << i;
      EXPECT_EQ(current(), expected) << i;
    }
  };
  run_all(nullptr);
  const device callers_own = device::open(driver_, driver_.device_count() - 1);
  const device_scope scope{callers_own};
  run_all(callers_own.context());
}

TEST_P(current_device, fresh_thread_works_on_the_device_of_the_object) {
  const stream s = device_.create_stream();
  const auto memory = pinned_buffer::allocate(device_, some_bytes);
  std::jthread{[&] {
    fill_async(device_, memory.address(), 7, some_bytes, s);
    event point = device_.create_event();
    point.record(s);
    EXPECT_EQ(point.wait(long_enough), wait_result::done);
    EXPECT_EQ(current(), nullptr);
  }}.join();
  EXPECT_TRUE(all_are(memory, 7));
}

TEST_P(device_memory, more_than_there_is_is_out_of_memory_and_nothing_is_broken) {
  expect_error(errc::out_of_memory, "cuMemAlloc_v2", [&] {
    return device_buffer::allocate(device_, std::size_t{1} << 60U);
  });
  EXPECT_NO_THROW(static_cast<void>(device_buffer::allocate(device_, some_bytes)));
}

TEST_P(device_memory, is_aligned_for_any_element) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{3}, std::size_t{257}}) {
    const auto memory = device_buffer::allocate(device_, bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.address()) % 256, 0U);
  }
}

TEST_P(device_memory, goes_with_its_buffer) {
  const device_scope scope{device_};
  abi::device_ptr address = 0;
  abi::device_ptr base = 0;
  std::size_t bytes = 0;
  {
    const auto memory = device_buffer::allocate(device_, some_bytes);
    address = reinterpret_cast<std::uintptr_t>(memory.address());
    driver_.check(driver_.table().cuMemGetAddressRange_v2(&base, &bytes, address),
                  "cuMemGetAddressRange_v2");
    EXPECT_EQ(base, address);
    EXPECT_GE(bytes, some_bytes);
  }
  EXPECT_NE(driver_.table().cuMemGetAddressRange_v2(&base, &bytes, address), abi::results::success);
}

TEST_P(device_memory, copies_go_in_every_direction) {
  const stream s = device_.create_stream();
  const auto first = device_buffer::allocate(device_, some_bytes);
  const auto second = device_buffer::allocate(device_, some_bytes);
  const auto from = pinned_buffer::allocate(device_, some_bytes);
  std::vector<std::uint8_t> to(some_bytes);
  for (std::size_t i = 0; i < some_bytes; ++i) {
    from.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(i % 251);
  }
  copy_async(device_, first.address(), from.address(), some_bytes, s);
  copy_async(device_, second.address(), first.address(), some_bytes, s);
  copy_async(device_, to.data(), second.address(), some_bytes, s);
  ASSERT_EQ(s.wait(long_enough), wait_result::done);
  EXPECT_TRUE(std::ranges::equal(
      to, std::vector(from.as<std::uint8_t>(), from.as<std::uint8_t>() + some_bytes)));
}

}  // namespace
}  // namespace spark_comm::cuda
