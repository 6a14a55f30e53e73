// SPDX-License-Identifier: AGPL-3.0-only
// The CUDA drivers that a contract test runs on, and a way to hold a stream up.
// Needs SPARK_COMM_TEST_HOST_RUNTIME, the path of the host runtime.
#pragma once

#include "support/log_capture.hpp"

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/stream.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace spark_comm::testing {

struct cuda_runtime {
  std::string name;
  std::string library;
};

/// The host runtime, and the NVIDIA driver where it has a device.
inline std::vector<cuda_runtime> cuda_runtimes() {
  std::vector<cuda_runtime> found{{"host", SPARK_COMM_TEST_HOST_RUNTIME}};
  const diagnostics quiet{diagnostics_sink{}};
  try {
    if (cuda::driver::load("libcuda.so.1", quiet).device_count() > 0) {
      found.push_back({"nvidia", "libcuda.so.1"});
    }
  } catch (const error&) {
    // No driver or no device here: the contract is then held on the host runtime alone.
  }
  return found;
}

inline std::string name_of_runtime(const ::testing::TestParamInfo<cuda_runtime>& info) {
  return info.param.name;
}

/// Holds a stream up until it is opened, at the latest when it goes.
class stream_gate {
 public:
  stream_gate() = default;
  stream_gate(const stream_gate&) = delete;
  stream_gate& operator=(const stream_gate&) = delete;
  stream_gate(stream_gate&&) = delete;
  stream_gate& operator=(stream_gate&&) = delete;

  ~stream_gate() { open(); }

  /// Work enqueued on `s` from here on waits for `open`.
  void hold(const cuda::stream& s) const {
    // The stream's own share: it may still be looking when the gate is gone.
    auto* const share = new std::shared_ptr<std::atomic<bool>>{is_open_};
    s.launch_host(&wait_until_open, share);
  }

  void open() {
    is_open_->store(true);
    is_open_->notify_all();
  }

 private:
  static void wait_until_open(void* share) {
    const std::unique_ptr<std::shared_ptr<std::atomic<bool>>> mine{
        static_cast<std::shared_ptr<std::atomic<bool>>*>(share)};
    (*mine)->wait(false);
  }

  std::shared_ptr<std::atomic<bool>> is_open_ = std::make_shared<std::atomic<bool>>(false);
};

/// A device of one runtime, and what the library reported meanwhile: nothing, unless a test says
/// so.
class cuda_contract : public ::testing::TestWithParam<cuda_runtime> {
 protected:
  void TearDown() override { EXPECT_EQ(log_.text(), expected_log_); }

  [[nodiscard]] cuda::abi::context current() const {
    cuda::abi::context context = nullptr;
    driver_.check(driver_.table().cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    return context;
  }

  log_capture log_;
  std::string expected_log_;
  cuda::driver driver_ = cuda::driver::load(GetParam().library, log_.log());
  cuda::device device_ = cuda::device::open(driver_, 0);
};

}  // namespace spark_comm::testing
