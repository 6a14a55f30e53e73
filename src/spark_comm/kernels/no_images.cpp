// SPDX-License-Identifier: AGPL-3.0-only
// What a build without nvcc has in place of device code. The build defines the reason.
#include <spark_comm/kernels/detail/device_images.hpp>
#include <spark_comm/kernels/detail/kernel_table.hpp>
#include <spark_comm/kernels/module.hpp>

namespace spark_comm::kernels {

const void* detail::device_image(kernel_family /*family*/) noexcept {
  return nullptr;
}

gpu_availability available_on_gpu() noexcept {
  return {.is_built = false, .architectures = "", .reason = SPARK_COMM_KERNELS_REASON};
}

}  // namespace spark_comm::kernels
