// SPDX-License-Identifier: AGPL-3.0-only
// A world of one on scripted tables: no NCCL call, and a copy only where one is needed.
#include "support/expect_error.hpp"
#include "support/log_capture.hpp"
#include "support/scripted_tables.hpp"

#include <spark_comm/comm/submission.hpp>
#include <spark_comm/spark_comm.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using testing::expect_error;

class solo : public ::testing::Test {
 protected:
  void SetUp() override {
    SCRIPTED_CALL(cuda::api, cuStreamGetCtx)::handle(
        tables_.script, [](cuda::abi::stream, cuda::abi::context* owner) {
          *owner = testing::scripted_cuda::context_of(0);
          return 0;
        });
  }

  communicator join() {
    return communicator::join(
        loaded_, {.address = {}, .rank = 0, .world_size = 1}, {.supervise = {}});
  }

  std::ptrdiff_t nccl_calls() const {
    const auto calls = tables_.script.calls();
    return std::ranges::count_if(calls, [](const std::string& c) { return c.starts_with("nccl"); });
  }

  std::ptrdiff_t copies() const { return tables_.script.count("cuMemcpyAsync"); }

  testing::log_capture log_;
  testing::scripted_tables tables_;
  runtime loaded_ = runtime::from_parts(
      runtime_kind::host, tables_.cuda.driver(log_.log()), tables_.nccl.library(log_.log()));
  std::array<float, 8> in_{};
  std::array<float, 8> out_{};
};

TEST_F(solo, makes_no_nccl_call_whatever_it_does) {
  communicator comm = join();
  const cuda::stream s = comm.device().create_stream();
  tables_.script.forget_calls();
  using enum data_type;
  all_reduce(comm, in_.data(), out_.data(), 8, float32, reduce_op::sum, s);
  broadcast(comm, in_.data(), out_.data(), 8, float32, rank_id{0}, s);
  reduce(comm, in_.data(), out_.data(), 8, float32, reduce_op::max, rank_id{0}, s);
  all_gather(comm, in_.data(), out_.data(), 8, float32, s);
  reduce_scatter(comm, in_.data(), out_.data(), 8, float32, reduce_op::avg, s);
  all_to_all(comm, in_.data(), out_.data(), 8, float32, s);
  EXPECT_EQ(copies(), 6);
  const std::array<std::size_t, 1> count{3};
  const std::array<std::size_t, 1> offset{2};
  all_to_all(comm, in_.data(), out_.data(), {count, offset, count, offset}, float32, s);
  EXPECT_EQ(copies(), 7);
  barrier(comm, 1s);
  EXPECT_EQ(comm.wait(s, 1s), wait_result::done);
  comm.close(1s);
  EXPECT_EQ(nccl_calls(), 0);
  EXPECT_EQ(comm.sequence(), 0U);
}

TEST_F(solo, copies_nothing_in_place_or_empty) {
  communicator comm = join();
  const cuda::stream s = comm.device().create_stream();
  all_reduce(comm, device_span<float>{in_.data(), 8}, reduce_op::sum, s);
  broadcast(comm, device_span<float>{in_.data(), 8}, rank_id{0}, s);
  all_gather(comm, in_.data(), in_.data(), 8, data_type::float32, s);
  reduce_scatter(comm, in_.data(), in_.data(), 8, data_type::float32, reduce_op::sum, s);
  all_reduce(comm, nullptr, nullptr, 0, data_type::float32, reduce_op::sum, s);
  EXPECT_EQ(copies(), 0);
  comm.close(1s);
}

TEST_F(solo, submit_copies_at_once_or_collects_in_a_group) {
  communicator comm = join();
  const cuda::stream s = comm.device().create_stream();
  const operation op{.record = {.count_elements = 8, .dtype = data_type::float32},
                     .in = in_.data(),
                     .out = out_.data(),
                     .stream = s.ref().get()};
  submit(comm, op);
  EXPECT_EQ(copies(), 1);
  {
    group_scope group{comm};
    submit(comm, op);
    EXPECT_EQ(copies(), 1);
    group.commit();
  }
  EXPECT_EQ(copies(), 2);
  comm.close(1s);
}

TEST_F(solo, refuses_a_message_to_itself_on_two_streams) {
  communicator comm = join();
  const cuda::stream s = comm.device().create_stream();
  const cuda::stream t = comm.device().create_stream();
  expect_error(errc::invalid_usage, "on one stream", [&] {
    group_scope group{comm};
    send(comm, device_span<float>{in_.data(), 8}, rank_id{0}, s);
    recv(comm, device_span<float>{out_.data(), 8}, rank_id{0}, t);
    group.commit();
  });
  EXPECT_EQ(copies(), 0);
  comm.close(1s);
}

TEST_F(solo, a_device_failure_seen_by_wait_breaks_it) {
  communicator comm = join();
  const cuda::stream s = comm.device().create_stream();
  tables_.script.answer("cuStreamQuery", {700});
  expect_error(errc::device_failed, "700", [&] { static_cast<void>(comm.wait(s, 1s)); });
  EXPECT_EQ(comm.state(), communicator_state::broken);
  EXPECT_EQ(comm.last_error()->native().number, 700);
  expect_error(errc::device_failed, "700", [&] {
    all_reduce(comm, device_span<float>{in_.data(), 8}, reduce_op::sum, s);
  });
}

TEST_F(solo, works_without_all_to_all_in_the_library_and_reports_what_is_missing_for_fp8) {
  tables_.nccl.version = 22304;
  const runtime old = runtime::from_parts(
      runtime_kind::nvidia, tables_.cuda.driver(log_.log()), tables_.nccl.library(log_.log()));
  communicator comm =
      communicator::join(old, {.address = {}, .rank = 0, .world_size = 1}, {.supervise = {}});
  const cuda::stream s = comm.device().create_stream();
  expect_error(errc::invalid_argument, "fp8 can be moved, not reduced", [&] {
    all_reduce(comm, in_.data(), in_.data(), 8, data_type::float8_e4m3, reduce_op::sum, s);
  });
  all_to_all(comm, in_.data(), out_.data(), 8, data_type::float8_e4m3, s);
  EXPECT_EQ(copies(), 1);
  comm.close(1s);
}

TEST_F(solo, leaves_no_handle_behind) {
  {
    communicator comm = join();
    const cuda::stream s = comm.device().create_stream();
    all_reduce(comm, device_span<float>{in_.data(), 8}, reduce_op::sum, s);
    comm.close(1s);
  }
  EXPECT_EQ(tables_.cuda.live_handles(), 0U);
  EXPECT_EQ(tables_.cuda.retained_contexts(), 0);
  EXPECT_EQ(tables_.cuda.current(), nullptr);
}

}  // namespace
}  // namespace spark_comm
