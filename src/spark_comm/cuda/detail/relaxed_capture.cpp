// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/cuda/detail/relaxed_capture.hpp>
#include <spark_comm/cuda/driver.hpp>

namespace spark_comm::cuda::detail {

relaxed_capture::relaxed_capture(const driver& loaded) : loaded_(loaded) {
  loaded_.check(loaded_.table().cuThreadExchangeStreamCaptureMode(&mode_),
                "cuThreadExchangeStreamCaptureMode");
}

relaxed_capture::~relaxed_capture() {
  loaded_.check_noexcept(loaded_.table().cuThreadExchangeStreamCaptureMode(&mode_),
                         "cuThreadExchangeStreamCaptureMode");
}

}  // namespace spark_comm::cuda::detail
