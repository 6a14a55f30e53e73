// SPDX-License-Identifier: AGPL-3.0-only
// Streams and events: order, asynchrony, helping, and what becomes of handles.
#include "driver_calls.hpp"

#include <spark_comm/cuda/abi.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

namespace spark_comm::host_test {

namespace {

class streams : public driver_fixture {};

struct note {
  std::vector<int>* log;
  int value;

  static void write(void* self) {
    const auto& mine = *static_cast<note*>(self);
    mine.log->push_back(mine.value);
  }
};

TEST_F(streams, run_work_in_order) {
  abi::stream s = make_stream();
  std::vector<int> log;
  std::vector<note> notes;
  std::vector<int> expected;
  for (int value = 0; value < 100; ++value) {
    notes.push_back({.log = &log, .value = value});
    expected.push_back(value);
  }
  for (note& each : notes) {
    ASSERT_EQ(cuLaunchHostFunc(s, &note::write, &each), results::success);
  }
  EXPECT_EQ(cuStreamSynchronize(s), results::success);
  EXPECT_EQ(log, expected);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

TEST_F(streams, run_work_that_nobody_waits_for) {
  abi::stream s = make_stream();
  std::atomic<int> calls = 0;
  const auto count = [](void* total) { ++*static_cast<std::atomic<int>*>(total); };
  for (int round = 1; round <= 3; ++round) {
    ASSERT_EQ(cuLaunchHostFunc(s, count, &calls), results::success);
    EXPECT_TRUE(eventually([&] { return calls == round; }));
  }
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

TEST_F(streams, do_not_hold_the_host) {
  abi::stream s = make_stream();
  gate door;
  door.block(s);
  EXPECT_EQ(cuStreamQuery(s), results::not_ready);
  EXPECT_TRUE(eventually([&] { return door.is_entered(); }));
  EXPECT_EQ(cuStreamQuery(s), results::not_ready);
  door.open();
  EXPECT_EQ(cuStreamSynchronize(s), results::success);
  EXPECT_EQ(cuStreamQuery(s), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

TEST_F(streams, a_query_runs_brief_work_itself) {
  abi::stream s = make_stream();
  auto* word = allocate<std::uint32_t>(1);
  *word = 0;
  for (std::uint32_t round = 1; round <= 100; ++round) {
    ASSERT_EQ(cuStreamWriteValue32_v2(s, address_of(word), round, 0), results::success);
    // At once, but for a worker that was just looking.
    EXPECT_TRUE(eventually([&] { return cuStreamQuery(s) == results::success; }));
    EXPECT_EQ(*word, round);
  }
  free_memory(word);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

TEST_F(streams, synchronizing_runs_work_on_the_calling_thread) {
  abi::stream s = make_stream();
  int own = 0;
  std::thread::id runner;
  const auto remember = [](void* id) {
    *static_cast<std::thread::id*>(id) = std::this_thread::get_id();
  };
  for (int round = 0; round < 100; ++round) {
    ASSERT_EQ(cuLaunchHostFunc(s, remember, &runner), results::success);
    ASSERT_EQ(cuStreamSynchronize(s), results::success);
    own += runner == std::this_thread::get_id() ? 1 : 0;
  }
  EXPECT_GT(own, 0);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

TEST_F(streams, one_waits_for_an_event_of_another) {
  abi::stream first = make_stream();
  abi::stream second = make_stream();
  abi::event e = make_event();
  auto* word = allocate<std::uint32_t>(2);
  gate door;
  door.block(first);
  ASSERT_EQ(cuStreamWriteValue32_v2(first, address_of(word), 7, 0), results::success);
  ASSERT_EQ(cuEventRecord(e, first), results::success);
  ASSERT_EQ(cuStreamWaitEvent(second, e, 0), results::success);
  ASSERT_EQ(cuMemcpyAsync(address_of(word + 1), address_of(word), sizeof(*word), second),
            results::success);
  EXPECT_EQ(cuEventQuery(e), results::not_ready);
  EXPECT_EQ(cuStreamQuery(second), results::not_ready);
  door.open();
  EXPECT_EQ(cuStreamSynchronize(second), results::success);
  EXPECT_EQ(word[1], 7U);
  EXPECT_EQ(cuEventQuery(e), results::success);
  free_memory(word);
  EXPECT_EQ(cuEventDestroy_v2(e), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(first), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(second), results::success);
}

TEST_F(streams, a_wait_keeps_the_record_it_was_made_for) {
  abi::stream first = make_stream();
  abi::stream second = make_stream();
  abi::event e = make_event();
  gate early;
  gate late;
  early.block(first);
  ASSERT_EQ(cuEventRecord(e, first), results::success);
  ASSERT_EQ(cuStreamWaitEvent(second, e, 0), results::success);
  late.block(first);
  ASSERT_EQ(cuEventRecord(e, first), results::success);
  early.open();
  EXPECT_EQ(cuStreamSynchronize(second), results::success);
  EXPECT_EQ(cuEventQuery(e), results::not_ready);
  late.open();
  EXPECT_EQ(cuEventSynchronize(e), results::success);
  EXPECT_EQ(cuEventDestroy_v2(e), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(first), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(second), results::success);
}

TEST_F(streams, an_event_ends_a_wait_before_later_work) {
  abi::stream s = make_stream();
  abi::event e = make_event();
  gate door;
  ASSERT_EQ(cuEventRecord(e, s), results::success);
  door.block(s);
  EXPECT_EQ(cuEventSynchronize(e), results::success);
  EXPECT_EQ(cuStreamQuery(s), results::not_ready);
  door.open();
  EXPECT_EQ(cuStreamSynchronize(s), results::success);
  EXPECT_EQ(cuEventDestroy_v2(e), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

TEST_F(streams, an_event_never_recorded_counts_as_done) {
  abi::event e = make_event();
  abi::stream s = make_stream();
  EXPECT_EQ(cuEventQuery(e), results::success);
  EXPECT_EQ(cuEventSynchronize(e), results::success);
  EXPECT_EQ(cuStreamWaitEvent(s, e, 0), results::success);
  EXPECT_EQ(cuStreamSynchronize(s), results::success);
  EXPECT_EQ(cuEventDestroy_v2(e), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

TEST_F(streams, timed_events_measure) {
  abi::stream s = make_stream();
  abi::event start = make_event(0);
  abi::event end = make_event(0);
  abi::event untimed = make_event();
  const auto spend = [](void*) { std::this_thread::sleep_for(milliseconds{5}); };
  float elapsed = -1;
  EXPECT_EQ(cuEventElapsedTime(&elapsed, start, end), results::invalid_handle);
  gate door;
  ASSERT_EQ(cuEventRecord(start, s), results::success);
  ASSERT_EQ(cuLaunchHostFunc(s, spend, nullptr), results::success);
  door.block(s);
  ASSERT_EQ(cuEventRecord(end, s), results::success);
  ASSERT_EQ(cuEventRecord(untimed, s), results::success);
  EXPECT_EQ(cuEventElapsedTime(&elapsed, start, end), results::not_ready);
  door.open();
  ASSERT_EQ(cuEventSynchronize(end), results::success);
  EXPECT_EQ(cuEventElapsedTime(&elapsed, start, end), results::success);
  EXPECT_GE(elapsed, 5.0F);
  EXPECT_EQ(cuEventElapsedTime(&elapsed, start, untimed), results::invalid_handle);
  for (abi::event each : {start, end, untimed}) {
    EXPECT_EQ(cuEventDestroy_v2(each), results::success);
  }
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

TEST_F(streams, destroying_what_is_in_use_is_safe) {
  abi::stream first = make_stream();
  abi::stream second = make_stream();
  abi::event e = make_event();
  auto* word = allocate<std::uint32_t>(1);
  *word = 0;
  gate door;
  door.block(first);
  ASSERT_EQ(cuStreamWriteValue32_v2(first, address_of(word), 1, 0), results::success);
  ASSERT_EQ(cuEventRecord(e, first), results::success);
  ASSERT_EQ(cuStreamWaitEvent(second, e, 0), results::success);
  EXPECT_EQ(cuEventDestroy_v2(e), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(first), results::success);
  EXPECT_EQ(cuStreamQuery(second), results::not_ready);
  door.open();
  EXPECT_EQ(cuStreamSynchronize(second), results::success);
  EXPECT_EQ(*word, 1U);
  free_memory(word);
  EXPECT_EQ(cuStreamDestroy_v2(second), results::success);
}

TEST_F(streams, the_null_stream_belongs_to_the_current_device) {
  auto* word = allocate<std::uint32_t>(1);
  ASSERT_EQ(cuStreamWriteValue32_v2(nullptr, address_of(word), 5, 0), results::success);
  EXPECT_EQ(cuStreamSynchronize(nullptr), results::success);
  EXPECT_EQ(*word, 5U);
  abi::context owner = nullptr;
  EXPECT_EQ(cuStreamGetCtx(nullptr, &owner), results::success);
  EXPECT_EQ(owner, context_);
  free_memory(word);
}

TEST_F(streams, a_number_belongs_to_one_stream_where_a_handle_may_come_again) {
  std::set<unsigned long long> numbers;
  for (int round = 0; round < 20; ++round) {
    abi::stream s = make_stream();
    unsigned long long id = 0;
    unsigned long long again = 0;
    ASSERT_EQ(cuStreamGetId(s, &id), results::success);
    ASSERT_EQ(cuStreamGetId(s, &again), results::success);
    EXPECT_EQ(id, again);
    EXPECT_TRUE(numbers.insert(id).second);
    EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
  }
  unsigned long long of_default = 0;
  EXPECT_EQ(cuStreamGetId(nullptr, &of_default), results::success);
  EXPECT_FALSE(numbers.contains(of_default));
  EXPECT_EQ(cuStreamGetId(nullptr, nullptr), results::invalid_value);
}

TEST_F(streams, stale_and_foreign_handles_are_refused) {
  abi::stream s = make_stream();
  abi::event e = make_event();
  int somewhere = 0;
  auto* foreign = reinterpret_cast<abi::stream>(&somewhere);
  auto* event_as_stream = reinterpret_cast<abi::stream>(e);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
  for (abi::stream wrong : {s, foreign, event_as_stream}) {
    EXPECT_EQ(cuStreamDestroy_v2(wrong), results::invalid_handle);
    EXPECT_EQ(cuStreamQuery(wrong), results::invalid_handle);
    EXPECT_EQ(cuStreamSynchronize(wrong), results::invalid_handle);
    EXPECT_EQ(cuEventRecord(e, wrong), results::invalid_handle);
    EXPECT_EQ(cuStreamWaitEvent(wrong, e, 0), results::invalid_handle);
  }
  EXPECT_EQ(cuStreamDestroy_v2(nullptr), results::invalid_handle);
  EXPECT_EQ(cuEventDestroy_v2(e), results::success);
  EXPECT_EQ(cuEventDestroy_v2(e), results::invalid_handle);
  EXPECT_EQ(cuEventQuery(e), results::invalid_handle);
  EXPECT_EQ(cuEventSynchronize(nullptr), results::invalid_handle);
}

TEST_F(streams, events_are_recorded_on_their_own_device_only) {
  abi::event e = make_event();
  abi::context other = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), results::success);
  ASSERT_EQ(cuCtxPushCurrent_v2(other), results::success);
  abi::stream s = make_stream();
  EXPECT_EQ(cuEventRecord(e, s), results::invalid_handle);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
  ASSERT_EQ(cuCtxPopCurrent_v2(nullptr), results::success);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(1), results::success);
  EXPECT_EQ(cuEventDestroy_v2(e), results::success);
}

TEST_F(streams, callbacks_must_not_call_the_driver) {
  abi::stream s = make_stream();

  struct answers {
    abi::stream asked;
    int synchronize = -1;
    int count = -1;
  } seen{.asked = s};

  const auto call = [](void* data) {
    auto& mine = *static_cast<answers*>(data);
    mine.synchronize = cuStreamSynchronize(mine.asked);
    int devices = 0;
    mine.count = cuDeviceGetCount(&devices);
  };
  ASSERT_EQ(cuLaunchHostFunc(s, call, &seen), results::success);
  EXPECT_EQ(cuStreamSynchronize(s), results::success);
  EXPECT_EQ(seen.synchronize, results::not_permitted);
  EXPECT_EQ(seen.count, results::not_permitted);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

TEST_F(streams, many_threads_may_use_one_stream) {
  abi::stream s = make_stream();
  constexpr int threads = 4;
  constexpr int rounds = 500;
  std::atomic<int> calls = 0;
  const auto count = [](void* total) { ++*static_cast<std::atomic<int>*>(total); };
  std::vector<std::thread> users;
  for (int thread = 0; thread < threads; ++thread) {
    users.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        EXPECT_EQ(cuLaunchHostFunc(s, count, &calls), results::success);
        if (round % 10 == 0) {
          EXPECT_EQ(cuStreamSynchronize(s), results::success);
        }
      }
    });
  }
  for (std::thread& user : users) {
    user.join();
  }
  EXPECT_EQ(cuStreamSynchronize(s), results::success);
  EXPECT_EQ(calls, threads * rounds);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

}  // namespace

}  // namespace spark_comm::host_test
