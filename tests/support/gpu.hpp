// SPDX-License-Identifier: AGPL-3.0-only
// The first GPU with the device kernels on it, and device copies of test buffers.
#pragma once

#include "support/typed_buffer.hpp"

#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/module.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace spark_comm::test {

struct gpu {
  cuda::device device;
  kernels::kernel_module kernels;
  cuda::stream stream;

  /// Waits for work on `s`, 20 s at most.
  void wait(cuda::stream_ref s) const {
    ASSERT_EQ(device.wait(s, std::chrono::seconds{20}), wait_result::done);
  }
};

/// None, with the reason, where there is no device or no device code.
[[nodiscard]] std::optional<gpu> open_gpu(std::string& why_not);

/// A test with a GPU.
class gpu_test : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    gpu_ = open_gpu(why_not);
    if (!gpu_) {
      GTEST_SKIP() << why_not;
    }
  }

  [[nodiscard]] const gpu& device() const { return *gpu_; }

 private:
  std::optional<gpu> gpu_;
};

/// A buffer's elements, guards and alignment in device memory.
template <typename T>
class gpu_copy {
 public:
  gpu_copy(const gpu& on, const typed_buffer<T>& source)
      : on_(&on),
        memory_(cuda::device_buffer::allocate(on.device, source.guarded_bytes().size())),
        count_(source.count()),
        offset_(source.offset()) {
    upload(source, on.stream);
    on.wait(on.stream);
  }

  [[nodiscard]] T* data() const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(memory_.address()) +
                                typed_buffer<T>{0, offset_}.first_byte());
  }

  /// Order: enqueued on `s`; `source` has been read on return or is kept by the caller until then.
  void upload(const typed_buffer<T>& source, cuda::stream_ref s) const {
    const std::span<std::byte> bytes = source.guarded_bytes();
    cuda::copy_async(on_->device, memory_.address(), bytes.data(), bytes.size(), s);
  }

  /// Waits for the stream first.
  [[nodiscard]] typed_buffer<T> download(cuda::stream_ref s) const {
    typed_buffer<T> result{count_, offset_};
    const std::span<std::byte> bytes = result.guarded_bytes();
    cuda::copy_async(on_->device, bytes.data(), memory_.address(), bytes.size(), s);
    on_->wait(s);
    return result;
  }

  [[nodiscard]] typed_buffer<T> download() const { return download(on_->stream); }

 private:
  const gpu* on_;
  cuda::device_buffer memory_;
  std::size_t count_;
  std::size_t offset_;
};

}  // namespace spark_comm::test
