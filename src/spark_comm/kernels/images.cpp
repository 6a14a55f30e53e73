// SPDX-License-Identifier: AGPL-3.0-only
// The embedded device code of a build with nvcc. The build defines the two texts.
#include <spark_comm/kernels/detail/device_images.hpp>
#include <spark_comm/kernels/detail/kernel_table.hpp>
#include <spark_comm/kernels/module.hpp>

#include <cstdint>

namespace spark_comm::kernels {
namespace detail {

// One generated file each.
extern const std::uint64_t add_image[];
extern const std::uint64_t rms_norm_image[];
extern const std::uint64_t one_shot_image[];
extern const std::uint64_t one_shot_rms_norm_image[];
extern const std::uint64_t two_shot_image[];
extern const std::uint64_t low_latency_image[];

const void* device_image(kernel_family family) noexcept {
  switch (family) {
    case kernel_family::add:               return add_image;
    case kernel_family::rms_norm:          return rms_norm_image;
    case kernel_family::one_shot:          return one_shot_image;
    case kernel_family::one_shot_rms_norm: return one_shot_rms_norm_image;
    case kernel_family::two_shot:          return two_shot_image;
    case kernel_family::low_latency:       return low_latency_image;
  }
  return nullptr;
}

}  // namespace detail

gpu_availability available_on_gpu() noexcept {
  return {.is_built = true,
          .architectures = SPARK_COMM_KERNELS_ARCHITECTURES,
          .reason = SPARK_COMM_KERNELS_REASON};
}

}  // namespace spark_comm::kernels
