// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"
#include "support/log_capture.hpp"
#include "support/scripted_tables.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/stream.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm::cuda {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using testing::expect_error;

TEST(device, number_outside_the_visible_ones_is_refused_before_any_context) {
  testing::scripted_tables native;
  const driver loaded = native.cuda.driver();
  expect_error(
      errc::invalid_argument, "device 3 of 1 visible", [&] { return device::open(loaded, 3); });
  expect_error(
      errc::invalid_argument, "device 1 of 1 visible", [&] { return device::open(loaded, 1); });
  expect_error(
      errc::invalid_argument, "device -1 of 1 visible", [&] { return device::open(loaded, -1); });
  EXPECT_EQ(native.script.count("cuDevicePrimaryCtxRetain"), 0);
}

TEST(device, none_at_all_is_the_devices_failure) {
  testing::scripted_tables native;
  native.cuda.device_count = 0;
  expect_error(errc::device_failed, "no device is visible", [&] {
    return device::open(native.cuda.driver(), 0);
  });
}

TEST(device, context_is_retained_once_and_released_with_the_last_copy) {
  testing::scripted_tables native;
  native.cuda.device_count = 2;
  {
    const device first = device::open(native.cuda.driver(), 1);
    std::optional<device> second = first;
    const stream made = second->create_stream();
    second.reset();
    EXPECT_EQ(first.ordinal(), 1);
    EXPECT_EQ(first.context(), testing::scripted_cuda::context_of(1));
    EXPECT_EQ(native.cuda.retained_contexts(), 1);
  }
  EXPECT_EQ(native.cuda.retained_contexts(), 0);
  EXPECT_EQ(native.script.count("cuDevicePrimaryCtxRetain"), 1);
}

TEST(device, stream_outlives_the_device_object_it_came_from) {
  testing::scripted_tables native;
  {
    const stream made = device::open(native.cuda.driver(), 0).create_stream();
    EXPECT_EQ(native.cuda.retained_contexts(), 1);
    EXPECT_EQ(made.poll(), progress::done);
  }
  EXPECT_EQ(native.cuda.retained_contexts(), 0);
  EXPECT_EQ(native.cuda.live_handles(), 0U);
}

TEST(device, failed_retain_releases_nothing) {
  testing::scripted_tables native;
  native.script.answer("cuDevicePrimaryCtxRetain", {abi::results::out_of_memory});
  expect_error(errc::out_of_memory, "cuDevicePrimaryCtxRetain", [&] {
    return device::open(native.cuda.driver(), 0);
  });
  EXPECT_EQ(native.script.count("cuDevicePrimaryCtxRelease_v2"), 0);
}

TEST(device, failed_release_is_reported) {
  testing::scripted_tables native;
  const testing::log_capture log;
  native.script.answer("cuDevicePrimaryCtxRelease_v2", {abi::results::deinitialized});
  {
    const device opened = device::open(native.cuda.driver(log.log()), 0);
  }
  EXPECT_NE(log.text().find("cuDevicePrimaryCtxRelease_v2 returned 4"), std::string::npos);
}

TEST(device, info_is_what_the_driver_says) {
  testing::scripted_tables native;
  native.cuda.device_count = 2;
  const device_info known = device::open(native.cuda.driver(), 1).info();
  EXPECT_EQ(known.ordinal, 1);
  EXPECT_EQ(known.name, "scripted device");
  EXPECT_EQ(known.pci_bus_id, "0000:02:00.0");
  EXPECT_EQ(known.uuid[15], 2);
  EXPECT_EQ(known.compute_major, abi::device_attribute::compute_capability_major);
  EXPECT_EQ(known.compute_minor, abi::device_attribute::compute_capability_minor);
  EXPECT_EQ(known.multiprocessors, abi::device_attribute::multiprocessor_count);
  EXPECT_EQ(known.total_bytes, std::size_t{1} << 30U);
}

TEST(device, memory_asks_with_the_device_current) {
  testing::scripted_tables native;
  SCRIPTED_CALL(api, cuMemGetInfo_v2)::handle(
      native.script, [&](std::size_t* free_bytes, std::size_t* total_bytes) {
        EXPECT_EQ(native.cuda.current(), testing::scripted_cuda::context_of(0));
        *free_bytes = 10;
        *total_bytes = 20;
        return 0;
      });
  const device opened = device::open(native.cuda.driver(), 0);
  EXPECT_EQ(opened.memory().free_bytes, 10U);
  EXPECT_EQ(opened.memory().total_bytes, 20U);
}

TEST(device_scope, puts_the_callers_device_back) {
  testing::scripted_tables native;
  native.cuda.device_count = 2;
  const device zero = device::open(native.cuda.driver(), 0);
  const device one = device::open(native.cuda.driver(), 1);
  EXPECT_EQ(native.cuda.current(), nullptr) << "opening makes nothing current";
  const device_scope outer{zero};
  {
    const device_scope inner{one};
    EXPECT_EQ(native.cuda.current(), one.context());
    // A library call that changes the device and does not put it back.
    static_cast<void>(one.loaded_driver().table().cuCtxSetCurrent(zero.context()));
  }
  EXPECT_EQ(native.cuda.current(), zero.context());
}

TEST(device_scope, changes_nothing_where_nothing_is_to_change) {
  testing::scripted_tables native;
  const device opened = device::open(native.cuda.driver(), 0);
  const device_scope outer{opened};
  native.script.forget_calls();
  {
    const device_scope inner{opened};
  }
  EXPECT_EQ(native.script.count("cuCtxSetCurrent"), 0);
}

TEST(device_scope, failed_entry_throws) {
  testing::scripted_tables native;
  const device opened = device::open(native.cuda.driver(), 0);
  for (const char* const call : {"cuCtxGetCurrent", "cuCtxSetCurrent"}) {
    native.script.answer(call, {abi::results::invalid_context});
    expect_error(errc::device_failed, std::string{call} + " returned 201", [&] {
      const device_scope scope{opened};
    });
  }
}

TEST(device_scope, failed_leave_is_reported) {
  testing::scripted_tables native;
  const testing::log_capture log;
  const device opened = device::open(native.cuda.driver(log.log()), 0);
  {
    const device_scope scope{opened};
    native.script.answer("cuCtxSetCurrent", {abi::results::invalid_context});
  }
  EXPECT_NE(log.text().find("cuCtxSetCurrent"), std::string::npos);
}

// The current device is the caller's before and after every call, also when the call fails.
TEST(device, no_call_changes_the_current_device) {
  testing::scripted_tables native;
  native.cuda.device_count = 2;
  const device other = device::open(native.cuda.driver(), 1);
  const device_scope callers_own{other};
  const device opened = device::open(native.cuda.driver(), 0);
  const stream made = opened.create_stream();

  struct call {
    const char* native_name;
    std::function<void()> run;
  };

  const std::vector<call> calls = {
      {"cuStreamCreate", [&] { static_cast<void>(opened.create_stream()); }},
      {"cuEventCreate", [&] { static_cast<void>(opened.create_event()); }},
      {"cuEventCreate", [&] { static_cast<void>(opened.create_timed_event()); }},
      {"cuStreamQuery", [&] { static_cast<void>(opened.poll(made)); }},
      {"cuStreamQuery", [&] { static_cast<void>(opened.wait(made, 0ns)); }},
      {"cuStreamIsCapturing", [&] { static_cast<void>(opened.is_capturing(made)); }},
      {"cuMemGetInfo_v2", [&] { static_cast<void>(opened.memory()); }},
      {"cuThreadExchangeStreamCaptureMode", [&] { static_cast<void>(opened.poll(made)); }},
      {"cuDeviceGetName", [&] { static_cast<void>(opened.info()); }},
  };
  for (const auto& [name, run] : calls) {
    EXPECT_NO_THROW(run()) << name;
    EXPECT_EQ(native.cuda.current(), other.context()) << name;
    native.script.answer(name, {abi::results::unknown});
    EXPECT_EQ(error_of(run).native().number, abi::results::unknown) << name;
    EXPECT_EQ(native.cuda.current(), other.context()) << name << " failed";
  }
}

TEST(device_poll, three_answers_three_outcomes) {
  testing::scripted_tables native;
  const device opened = device::open(native.cuda.driver(), 0);
  const stream made = opened.create_stream();
  EXPECT_EQ(opened.poll(made), progress::done);
  native.script.answer("cuStreamQuery", {abi::results::not_ready, abi::results::illegal_address});
  EXPECT_EQ(opened.poll(made), progress::pending);
  const error failure = error_of([&] { return opened.poll(made); });
  EXPECT_EQ(failure.kind(), errc::device_failed);
  EXPECT_EQ(failure.native().number, 700);
}

TEST(device_poll, capturing_stream_is_refused_before_the_query) {
  testing::scripted_tables native;
  const device opened = device::open(native.cuda.driver(), 0);
  const stream made = opened.create_stream();
  native.cuda.set_capturing(made.ref().get(), true);
  expect_error(errc::invalid_usage, "is being captured", [&] { return opened.poll(made); });
  expect_error(errc::invalid_usage, "is being captured", [&] { return opened.wait(made, 1s); });
  EXPECT_TRUE(opened.is_capturing(made));
  EXPECT_EQ(native.script.count("cuStreamQuery"), 0);
  native.cuda.set_capturing(made.ref().get(), false);
  EXPECT_EQ(opened.poll(made), progress::done);
}

TEST(device_poll, default_stream_beside_somebodys_capture_is_wrong_usage) {
  testing::scripted_tables native;
  const device opened = device::open(native.cuda.driver(), 0);
  native.script.answer("cuStreamIsCapturing", {abi::results::stream_capture_implicit});
  expect_error(errc::invalid_usage, "cuStreamIsCapturing returned 906", [&] {
    return opened.poll(stream_ref::default_stream());
  });
}

TEST(device_poll, capture_mode_is_relaxed_during_the_query_and_back_after_it) {
  testing::scripted_tables native;
  const device opened = device::open(native.cuda.driver(), 0);
  const stream made = opened.create_stream();
  SCRIPTED_CALL(api, cuStreamQuery)::handle(native.script, [&](abi::stream) {
    EXPECT_EQ(native.cuda.capture_mode(), abi::capture_mode::relaxed);
    return abi::results::illegal_address;
  });
  EXPECT_EQ(error_of([&] { return opened.poll(made); }).kind(), errc::device_failed);
  EXPECT_EQ(native.cuda.capture_mode(), abi::capture_mode::global);
}

TEST(device_wait, ends_with_the_work) {
  testing::scripted_tables native;
  const device opened = device::open(native.cuda.driver(), 0);
  const stream made = opened.create_stream();
  int queries = 0;
  SCRIPTED_CALL(api, cuStreamQuery)::handle(native.script, [&](abi::stream) {
    return ++queries < 70 ? abi::results::not_ready : 0;  // past the spinning, into the sleeps
  });
  EXPECT_EQ(opened.wait(made, 60s), wait_result::done);
  EXPECT_EQ(queries, 70);
}

TEST(device_wait, deadline_is_an_answer_and_at_least_one_question_is_asked) {
  testing::scripted_tables native;
  const device opened = device::open(native.cuda.driver(), 0);
  const stream made = opened.create_stream();
  EXPECT_EQ(opened.wait(made, 0ns), wait_result::done);
  EXPECT_EQ(opened.wait(made, -1s), wait_result::done);
  SCRIPTED_CALL(api, cuStreamQuery)::handle(native.script,
                                            [](abi::stream) { return abi::results::not_ready; });
  EXPECT_EQ(opened.wait(made, 0ns), wait_result::timed_out);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(opened.wait(made, 20ms), wait_result::timed_out);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
}

TEST(device_wait, failure_ends_it) {
  testing::scripted_tables native;
  const device opened = device::open(native.cuda.driver(), 0);
  const stream made = opened.create_stream();
  native.script.answer("cuStreamQuery", {abi::results::not_ready, abi::results::not_ready, 719});
  expect_error(
      errc::device_failed, "cuStreamQuery returned 719", [&] { return opened.wait(made, 60s); });
}

}  // namespace
}  // namespace spark_comm::cuda
