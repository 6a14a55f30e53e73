// SPDX-License-Identifier: AGPL-3.0-only
// Lets a thread make calls that would otherwise break a capture that somebody else has going.
#pragma once

#include <spark_comm/cuda/driver.hpp>

namespace spark_comm::cuda::detail {

/// While it lives, "unsafe" calls of this thread (queries, allocations) do not invalidate a capture
/// that another thread began in global mode. CUDA keeps the mode per thread; the old one comes
/// back. Source: cuThreadExchangeStreamCaptureMode, CUDA 13.0.
class relaxed_capture {
 public:
  [[nodiscard]] explicit relaxed_capture(const driver& loaded);
  relaxed_capture(const relaxed_capture&) = delete;
  relaxed_capture& operator=(const relaxed_capture&) = delete;
  relaxed_capture(relaxed_capture&&) = delete;
  relaxed_capture& operator=(relaxed_capture&&) = delete;
  ~relaxed_capture();

 private:
  const driver& loaded_;
  abi::capture_mode mode_ = abi::capture_mode::relaxed;
};

}  // namespace spark_comm::cuda::detail
