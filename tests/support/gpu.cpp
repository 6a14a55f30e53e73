// SPDX-License-Identifier: AGPL-3.0-only
#include "support/gpu.hpp"

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/kernels/module.hpp>

#include <optional>
#include <string>

namespace spark_comm::test {

std::optional<gpu> open_gpu(std::string& why_not) {
  if (!kernels::available_on_gpu().is_built) {
    why_not = "no device kernels in this build: " + std::string{kernels::available_on_gpu().reason};
    return std::nullopt;
  }
  std::optional<cuda::device> device;
  try {
    const cuda::driver driver = cuda::driver::load("libcuda.so.1", diagnostics{});
    device = cuda::device::open(driver, 0);
  } catch (const error& failure) {
    why_not = failure.what();
    return std::nullopt;
  }
  // From here on a failure is the kernels' and must not be skipped.
  return gpu{.device = *device,
             .kernels = kernels::kernel_module::load(*device, kernels::image_kind::gpu),
             .stream = device->create_stream()};
}

}  // namespace spark_comm::test
