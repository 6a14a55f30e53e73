// SPDX-License-Identifier: AGPL-3.0-only
// What breaks a capture, in which mode and from which thread. The results are those that
// the driver gave on a GPU.
#include "driver_calls.hpp"

#include <spark_comm/cuda/abi.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

namespace spark_comm::host_test {

namespace {

using abi::capture_mode;
using abi::capture_status;

constexpr abi::result illegal_state = 401;
constexpr abi::result merge_error = 902;
constexpr abi::result unmatched = 903;
constexpr abi::result unjoined = 904;
constexpr abi::result isolation = 905;
constexpr abi::result captured_event = 907;
constexpr abi::result wrong_thread = 908;
constexpr capture_mode all_modes[] = {
    capture_mode::global, capture_mode::thread_local_mode, capture_mode::relaxed};

class capture : public driver_fixture {
 protected:
  void SetUp() override {
    driver_fixture::SetUp();
    s_ = make_stream();
    other_ = make_stream();
    done_ = make_event();
    inside_ = make_event();
    word_ = allocate<unsigned>(1);
    ASSERT_EQ(cuEventRecord(done_, other_), results::success);
  }

  void TearDown() override {
    free_memory(word_);
    EXPECT_EQ(cuEventDestroy_v2(done_), results::success);
    EXPECT_EQ(cuEventDestroy_v2(inside_), results::success);
    EXPECT_EQ(cuStreamDestroy_v2(s_), results::success);
    EXPECT_EQ(cuStreamDestroy_v2(other_), results::success);
    driver_fixture::TearDown();
  }

  void begin(capture_mode mode) {
    ASSERT_EQ(cuStreamBeginCapture_v2(s_, mode), results::success);
    work_on(s_);
  }

  void work_on(abi::stream s) {
    ASSERT_EQ(cuStreamWriteValue32_v2(s, address_of(word_), 1, 0), results::success);
  }

  // Ends the capture of s_, and drops the graph if there is one.
  abi::result end() {
    abi::graph g = nullptr;
    const abi::result result = cuStreamEndCapture(s_, &g);
    EXPECT_EQ(g != nullptr, result == results::success);
    if (g != nullptr) {
      EXPECT_EQ(cuGraphDestroy(g), results::success);
    }
    return result;
  }

  static capture_status status_of(abi::stream s) {
    capture_status status{};
    EXPECT_EQ(cuStreamIsCapturing(s, &status), results::success);
    return status;
  }

  // Runs `call` in another thread that has the same context.
  abi::result elsewhere(const std::function<abi::result()>& call) {
    abi::result result = -1;
    std::thread{[&] {
      EXPECT_EQ(cuCtxSetCurrent(context_), results::success);
      result = call();
    }}.join();
    return result;
  }

  abi::stream s_ = nullptr;
  abi::stream other_ = nullptr;
  abi::event done_ = nullptr;    // recorded on other_, reached
  abi::event inside_ = nullptr;  // for records in a capture
  unsigned* word_ = nullptr;
};

// Calls that CUDA holds unsafe: none of them has to do with the captured stream.
TEST_F(capture, unsafe_calls_break_what_they_may_disturb) {
  abi::device_ptr memory = 0;
  const std::function<abi::result()> calls[] = {
      [&] { return cuStreamQuery(other_); },
      [&] { return cuStreamSynchronize(other_); },
      [&] { return cuEventQuery(done_); },
      [&] { return cuEventSynchronize(done_); },
      [&] {
        const abi::result result = cuMemAlloc_v2(&memory, 9);
        return result == results::success ? cuMemFree_v2(memory) : result;
      },
  };
  for (const capture_mode mode : all_modes) {
    for (const auto& call : calls) {
      const bool breaks_own = mode != capture_mode::relaxed;
      begin(mode);
      EXPECT_EQ(call(), breaks_own ? results::stream_capture_unsupported : results::success);
      EXPECT_EQ(status_of(s_), breaks_own ? capture_status::invalidated : capture_status::active);
      EXPECT_EQ(end(), breaks_own ? results::stream_capture_invalidated : results::success);
      const bool breaks_others = mode == capture_mode::global;
      begin(mode);
      EXPECT_EQ(elsewhere(call),
                breaks_others ? results::stream_capture_unsupported : results::success);
      EXPECT_EQ(end(), breaks_others ? results::stream_capture_invalidated : results::success);
    }
  }
  EXPECT_EQ(cuEventQuery(done_), results::success);
}

TEST_F(capture, a_thread_can_relax_its_own_calls) {
  const auto exchange = [](capture_mode mode) {
    EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), results::success);
    return mode;
  };
  begin(capture_mode::global);
  for (const capture_mode mode : {capture_mode::relaxed, capture_mode::thread_local_mode}) {
    EXPECT_EQ(elsewhere([&] {
                EXPECT_EQ(exchange(mode), capture_mode::global);
                return cuEventQuery(done_);
              }),
              results::success);
  }
  EXPECT_EQ(exchange(capture_mode::relaxed), capture_mode::global);
  EXPECT_EQ(cuEventQuery(done_), results::success);
  EXPECT_EQ(exchange(capture_mode::global), capture_mode::relaxed);
  EXPECT_EQ(end(), results::success);
  auto none = static_cast<capture_mode>(7);
  EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&none), results::invalid_value);
}

TEST_F(capture, asking_a_captured_stream_breaks_it_in_every_mode) {
  for (const capture_mode mode : all_modes) {
    begin(mode);
    EXPECT_EQ(cuStreamQuery(s_), results::stream_capture_unsupported);
    EXPECT_EQ(end(), results::stream_capture_invalidated);
    begin(mode);
    EXPECT_EQ(cuStreamSynchronize(s_), results::stream_capture_unsupported);
    EXPECT_EQ(end(), results::stream_capture_invalidated);
    begin(mode);
    EXPECT_EQ(cuEventRecord(inside_, s_), results::success);
    EXPECT_EQ(cuEventQuery(inside_), captured_event);
    EXPECT_EQ(end(), results::stream_capture_invalidated);
  }
}

TEST_F(capture, an_event_of_an_ended_capture_is_of_no_use) {
  begin(capture_mode::relaxed);
  EXPECT_EQ(cuEventRecord(inside_, s_), results::success);
  EXPECT_EQ(end(), results::success);
  EXPECT_EQ(cuEventQuery(inside_), results::invalid_value);
  EXPECT_EQ(cuStreamWaitEvent(other_, inside_, 0), results::invalid_value);
  EXPECT_EQ(cuEventRecord(inside_, s_), results::success);
  EXPECT_EQ(cuEventSynchronize(inside_), results::success);
}

TEST_F(capture, waiting_for_work_outside_breaks_it) {
  begin(capture_mode::relaxed);
  EXPECT_EQ(cuStreamWaitEvent(s_, done_, 0), isolation);
  EXPECT_EQ(end(), results::stream_capture_invalidated);
}

TEST_F(capture, nothing_can_be_added_to_a_broken_one) {
  begin(capture_mode::global);
  EXPECT_EQ(cuEventQuery(done_), results::stream_capture_unsupported);
  EXPECT_EQ(cuEventQuery(done_), results::stream_capture_unsupported);
  EXPECT_EQ(cuStreamWriteValue32_v2(s_, address_of(word_), 1, 0),
            results::stream_capture_invalidated);
  EXPECT_EQ(cuEventRecord(inside_, s_), results::stream_capture_invalidated);
  EXPECT_EQ(end(), results::stream_capture_invalidated);
  EXPECT_EQ(status_of(s_), capture_status::none);
  work_on(s_);
  EXPECT_EQ(cuStreamSynchronize(s_), results::success);
}

TEST_F(capture, begins_once_and_ends_once) {
  EXPECT_EQ(end(), illegal_state);
  begin(capture_mode::global);
  EXPECT_EQ(status_of(s_), capture_status::active);
  EXPECT_EQ(cuStreamBeginCapture_v2(s_, capture_mode::global), illegal_state);
  EXPECT_EQ(end(), results::success);
  EXPECT_EQ(end(), illegal_state);
  EXPECT_EQ(cuStreamBeginCapture_v2(nullptr, capture_mode::global),
            results::stream_capture_unsupported);
  EXPECT_EQ(cuStreamBeginCapture_v2(s_, static_cast<capture_mode>(9)), results::invalid_value);
}

TEST_F(capture, ends_in_the_thread_that_began_it) {
  for (const capture_mode mode : all_modes) {
    begin(mode);
    EXPECT_EQ(elsewhere([&] { return end(); }),
              mode == capture_mode::relaxed ? results::success : wrong_thread);
    EXPECT_EQ(end(), illegal_state);
  }
}

TEST_F(capture, forked_work_has_to_be_joined) {
  begin(capture_mode::global);
  ASSERT_EQ(cuEventRecord(inside_, s_), results::success);
  ASSERT_EQ(cuStreamWaitEvent(other_, inside_, 0), results::success);
  EXPECT_EQ(status_of(other_), capture_status::active);
  work_on(other_);
  EXPECT_EQ(end(), unjoined);
  EXPECT_EQ(status_of(other_), capture_status::none);
  begin(capture_mode::global);
  ASSERT_EQ(cuEventRecord(inside_, s_), results::success);
  ASSERT_EQ(cuStreamWaitEvent(other_, inside_, 0), results::success);
  abi::graph g = nullptr;
  EXPECT_EQ(cuStreamEndCapture(other_, &g), unmatched);
  EXPECT_EQ(end(), results::stream_capture_invalidated);
}

TEST_F(capture, two_do_not_merge) {
  begin(capture_mode::relaxed);
  ASSERT_EQ(cuStreamBeginCapture_v2(other_, capture_mode::relaxed), results::success);
  ASSERT_EQ(cuEventRecord(inside_, s_), results::success);
  EXPECT_EQ(cuStreamWaitEvent(other_, inside_, 0), merge_error);
  EXPECT_EQ(end(), results::stream_capture_invalidated);
  abi::graph g = nullptr;
  EXPECT_EQ(cuStreamEndCapture(other_, &g), results::stream_capture_invalidated);
}

TEST_F(capture, destroying_its_stream_ends_it) {
  abi::stream gone = make_stream();
  ASSERT_EQ(cuStreamBeginCapture_v2(gone, capture_mode::global), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(gone), results::success);
  EXPECT_EQ(cuEventQuery(done_), results::success);
}

}  // namespace

}  // namespace spark_comm::host_test
