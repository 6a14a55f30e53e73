// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"
#include "support/log_capture.hpp"
#include "support/scripted_tables.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/graph.hpp>
#include <spark_comm/cuda/stream.hpp>

#include <gtest/gtest.h>

#include <utility>

namespace spark_comm::cuda {
namespace {

using testing::expect_error;

class cuda_graphs : public ::testing::Test {
 protected:
  testing::scripted_tables native_;
  testing::log_capture log_;
  device device_ = device::open(native_.cuda.driver(log_.log()), 0);
  stream stream_ = device_.create_stream();
};

TEST_F(cuda_graphs, capture_instantiate_launch_and_nothing_is_left) {
  {
    capture_scope capture{device_, stream_};
    EXPECT_TRUE(device_.is_capturing(stream_));
    const graph recorded = capture.end();
    EXPECT_FALSE(device_.is_capturing(stream_));
    EXPECT_NE(recorded.get(), nullptr);
    const graph_exec exec = recorded.instantiate();
    EXPECT_NE(exec.get(), nullptr);
    exec.launch(stream_);
    exec.launch(stream_);
  }
  EXPECT_EQ(native_.script.count("cuGraphLaunch"), 2);
  EXPECT_EQ(native_.cuda.live_handles(), 1U) << "the stream";
  EXPECT_EQ(native_.cuda.current(), nullptr);
  EXPECT_EQ(log_.size(), 0U) << log_.text();
}

TEST_F(cuda_graphs, capture_is_local_to_its_thread) {
  abi::capture_mode asked = abi::capture_mode::global;
  SCRIPTED_CALL(api, cuStreamBeginCapture_v2)::handle(native_.script,
                                                      [&](abi::stream, abi::capture_mode mode) {
                                                        asked = mode;
                                                        return 0;
                                                      });
  const capture_scope capture{device_, stream_};
  EXPECT_EQ(asked, abi::capture_mode::thread_local_mode);
}

TEST_F(cuda_graphs, abandoned_capture_ends_and_leaves_no_graph) {
  {
    const capture_scope capture{device_, stream_};
  }
  EXPECT_FALSE(device_.is_capturing(stream_));
  EXPECT_EQ(native_.cuda.live_handles(), 1U) << "the stream";
  EXPECT_EQ(log_.size(), 0U) << log_.text();
}

TEST_F(cuda_graphs, abandoned_capture_reports_only_what_is_news) {
  native_.script.answer("cuStreamEndCapture",
                        {abi::results::stream_capture_invalidated,
                         abi::results::stream_capture_unjoined,
                         abi::results::illegal_address});
  {
    const capture_scope capture{device_, stream_};
  }
  {
    const capture_scope capture{device_, stream_};
  }
  EXPECT_EQ(log_.size(), 0U) << log_.text();
  {
    const capture_scope capture{device_, stream_};
  }
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(cuda_graphs, broken_capture_is_wrong_usage_and_is_over) {
  native_.script.answer("cuStreamEndCapture", {abi::results::stream_capture_invalidated});
  capture_scope capture{device_, stream_};
  expect_error(
      errc::invalid_usage, "cuStreamEndCapture returned 901", [&] { return capture.end(); });
  expect_error(errc::invalid_usage, "ended before", [&] { return capture.end(); });
  EXPECT_EQ(native_.script.count("cuStreamEndCapture"), 1);
}

TEST_F(cuda_graphs, refused_capture_ends_nothing) {
  native_.script.answer("cuStreamBeginCapture_v2", {abi::results::stream_capture_unsupported});
  expect_error(errc::invalid_usage, "cuStreamBeginCapture_v2 returned 900", [&] {
    const capture_scope capture{device_, stream_};
  });
  EXPECT_EQ(native_.script.count("cuStreamEndCapture"), 0);
}

TEST_F(cuda_graphs, moved_from_is_refused) {
  capture_scope capture{device_, stream_};
  graph recorded = capture.end();
  graph_exec exec = recorded.instantiate();
  const graph other_graph = std::move(recorded);
  const graph_exec other_exec = std::move(exec);
  // NOLINTBEGIN(bugprone-use-after-move): the subject
  expect_error(errc::invalid_usage, "moved from", [&] { return recorded.instantiate(); });
  expect_error(errc::invalid_usage, "moved from", [&] { exec.launch(stream_); });
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_NO_THROW(other_exec.launch(stream_));
  native_.script.answer("cuGraphLaunch", {abi::results::invalid_handle});
  expect_error(errc::invalid_argument, "cuGraphLaunch", [&] { other_exec.launch(stream_); });
  native_.script.answer("cuGraphInstantiateWithFlags", {abi::results::out_of_memory});
  expect_error(errc::out_of_memory, "cuGraphInstantiateWithFlags", [&] {
    return other_graph.instantiate();
  });
}

}  // namespace
}  // namespace spark_comm::cuda
