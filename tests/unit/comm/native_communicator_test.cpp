// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"
#include "support/scripted_tables.hpp"

#include <spark_comm/comm/detail/native_communicator.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/nccl/abi.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace spark_comm::detail {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
namespace results = nccl::abi::results;

class native : public ::testing::Test {
 protected:
  // Answers "in progress" so many times, then `last` for ever.
  void answer_after(int polls, int last) {
    SCRIPTED_CALL(nccl::api, ncclCommGetAsyncError)::handle(
        tables_.script, [this, polls, last](nccl::abi::comm, int* state) {
          *state = asked_++ < polls ? results::in_progress : last;
          return 0;
        });
  }

  void connect(duration limit = 10s) {
    native_.connect(
        {.id = {}, .rank = 1, .world_size = 2, .options = {}}, deadline::after(limit), give_up_);
  }

  std::ptrdiff_t calls(const char* name) const { return tables_.script.count(name); }

  testing::scripted_tables tables_;
  cuda::device device_ = cuda::device::open(tables_.cuda.driver(), 0);
  native_communicator native_{tables_.nccl.library(diagnostics{diagnostics_sink{}}), device_};
  give_up_check give_up_ = [] {};
  std::atomic<int> asked_{0};
};

TEST_F(native, is_ready_after_any_number_of_in_progress_answers_and_not_before) {
  for (const int polls : {0, 1, 30}) {
    native_communicator fresh{tables_.nccl.library(), device_};
    asked_ = 0;
    answer_after(polls, results::success);
    fresh.connect(
        {.id = {}, .rank = 0, .world_size = 2, .options = {}}, deadline::after(10s), give_up_);
    EXPECT_GT(asked_, polls);
    EXPECT_NE(fresh.working(), nullptr);
    fresh.abort();
  }
  EXPECT_EQ(tables_.nccl.live_communicators(), 0U);
}

struct ending {
  int code;
  errc kind;
};

TEST_F(native, tells_an_error_that_ends_the_progress_with_its_number) {
  for (const ending each : {ending{results::system_error, errc::system_failed},
                            ending{results::remote_error, errc::peer_lost},
                            ending{8, errc::internal},
                            ending{99, errc::internal}}) {
    native_communicator fresh{tables_.nccl.library(), device_};
    asked_ = 0;
    answer_after(3, each.code);
    const error thrown = error_of([&] {
      fresh.connect(
          {.id = {}, .rank = 0, .world_size = 2, .options = {}}, deadline::after(10s), give_up_);
    });
    EXPECT_EQ(thrown.native().number, each.code) << thrown.what();
    EXPECT_EQ(asked_, 4) << "no further polling";
    EXPECT_EQ(fresh.working(), nullptr);
    fresh.abort();
  }
  EXPECT_EQ(tables_.nccl.live_communicators(), 0U);
}

TEST_F(native, gives_up_at_the_deadline_when_nothing_else_ever_comes) {
  answer_after(1 << 30, results::success);
  EXPECT_EQ(error_of([&] { connect(30ms); }).kind(), errc::timed_out);
  EXPECT_LT(asked_, 200) << "it does not spin";
  native_.abort();
  EXPECT_FALSE(native_.is_live());
}

TEST_F(native, an_init_in_progress_is_no_error_and_an_invalid_argument_is) {
  SCRIPTED_CALL(nccl::api, ncclCommInitRankConfig)::handle(
      tables_.script, [](nccl::abi::comm* out, int, nccl::abi::unique_id, int, nccl::abi::config*) {
        *out = nullptr;
        return results::invalid_argument;
      });
  EXPECT_EQ(error_of([&] { connect(); }).kind(), errc::invalid_argument);
  EXPECT_FALSE(native_.is_live());
  tables_.script.answer("ncclCommInitRankConfig", {results::in_progress});
  tables_.script.answer("ncclCommSplit", {results::in_progress});
  // The scripted answers make no child: that is told, not passed on as a null handle.
  EXPECT_EQ(error_of([&] { connect(); }).kind(), errc::internal);
}

TEST_F(native, makes_a_non_blocking_parent_and_a_blocking_child_that_share) {
  std::vector<int> blocking;
  std::vector<int> sharing;
  SCRIPTED_CALL(nccl::api, ncclCommInitRankConfig)::handle(
      tables_.script,
      [&](nccl::abi::comm* out, int, nccl::abi::unique_id, int, nccl::abi::config* config) {
        *out = reinterpret_cast<nccl::abi::comm>(0x10);
        blocking.push_back(config->blocking);
        sharing.push_back(config->split_share);
        return results::in_progress;
      });
  SCRIPTED_CALL(nccl::api, ncclCommSplit)::handle(
      tables_.script,
      [&](nccl::abi::comm, int, int, nccl::abi::comm* out, nccl::abi::config* config) {
        *out = reinterpret_cast<nccl::abi::comm>(0x20);
        blocking.push_back(config->blocking);
        sharing.push_back(config->split_share);
        return results::success;
      });
  connect();
  EXPECT_EQ(blocking, (std::vector<int>{0, 1}));
  EXPECT_EQ(sharing, (std::vector<int>{1, 1}));
  EXPECT_EQ(native_.working(), reinterpret_cast<nccl::abi::comm>(0x20));
}

TEST_F(native, passes_on_what_the_caller_throws_between_polls) {
  answer_after(1 << 30, results::success);
  give_up_ = [] { throw std::runtime_error{"enough"}; };
  EXPECT_THROW(connect(), std::runtime_error);
  native_.abort();
  EXPECT_EQ(tables_.nccl.live_communicators(), 0U);
}

TEST_F(native, destroys_the_child_then_finalizes_and_destroys_the_parent) {
  connect();
  tables_.script.forget_calls();
  native_.destroy(deadline::after(10s));
  EXPECT_EQ(calls("ncclCommDestroy"), 2);
  EXPECT_EQ(calls("ncclCommFinalize"), 1);
  EXPECT_EQ(tables_.nccl.live_communicators(), 0U);
  EXPECT_FALSE(native_.is_live());
  native_.destroy(deadline::after(10s));
  native_.abort();
  EXPECT_EQ(calls("ncclCommDestroy"), 2);
  EXPECT_EQ(calls("ncclCommAbort"), 0);
}

TEST_F(native, aborts_each_handle_once) {
  connect();
  std::thread second{[&] { native_.abort(); }};
  native_.abort();
  second.join();
  EXPECT_EQ(calls("ncclCommAbort"), 2);
  EXPECT_EQ(tables_.nccl.live_communicators(), 0U);
}

TEST_F(native, an_abort_frees_a_destroy_that_is_stuck) {
  connect();
  std::atomic<bool> is_inside{false};
  std::atomic<bool> is_free{false};
  SCRIPTED_CALL(nccl::api, ncclCommDestroy)::handle(tables_.script, [&](nccl::abi::comm) {
    is_inside = true;
    is_free.wait(false);
    return results::success;
  });
  SCRIPTED_CALL(nccl::api, ncclCommAbort)::handle(tables_.script, [&](nccl::abi::comm) {
    is_free = true;  // the shared abort flag
    is_free.notify_all();
    return results::success;
  });
  std::thread destroyer{[&] { native_.destroy(deadline::after(10s)); }};
  while (!is_inside) {
    std::this_thread::yield();
  }
  native_.abort();
  destroyer.join();
  EXPECT_EQ(calls("ncclCommDestroy"), 1);
  EXPECT_EQ(calls("ncclCommAbort"), 1) << "the parent; the child was being destroyed";
  EXPECT_FALSE(native_.is_live());
}

TEST_F(native, hands_the_parent_back_when_finalizing_takes_too_long) {
  connect();
  answer_after(1 << 30, results::success);
  EXPECT_EQ(error_of([&] { native_.destroy(deadline::after(10ms)); }).kind(), errc::timed_out);
  EXPECT_TRUE(native_.is_live());
  native_.abort();
  EXPECT_EQ(calls("ncclCommAbort"), 1);
  EXPECT_EQ(tables_.nccl.live_communicators(), 0U);
}

TEST_F(native, shows_the_asynchronous_error_of_either) {
  connect();
  EXPECT_EQ(native_.async_error(), results::success);
  answer_after(0, results::remote_error);
  EXPECT_EQ(native_.async_error(), results::remote_error);
  tables_.script.answer("ncclCommGetAsyncError", {results::internal_error});
  EXPECT_EQ(native_.async_error(), results::internal_error) << "the question itself failed";
  native_.abort();
}

}  // namespace
}  // namespace spark_comm::detail
