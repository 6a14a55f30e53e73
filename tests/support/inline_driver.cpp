// SPDX-License-Identifier: AGPL-3.0-only
#include "support/inline_driver.hpp"

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/api.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/kernels/detail/host_image.hpp>
#include <spark_comm/kernels/module.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace spark_comm::test {
namespace {

namespace abi = cuda::abi;
using kernels::detail::host_kernel_entry;
using kernels::detail::host_module_image;

// A module handle is its image, and a function handle its entry.

abi::result load_module(abi::module* module, const void* image) {
  std::uint64_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  if (magic != kernels::detail::host_module_magic) {
    return abi::results::no_binary_for_gpu;
  }
  *module = static_cast<abi::module>(const_cast<void*>(image));  // never written through
  return abi::results::success;
}

abi::result find_function(abi::function* function, abi::module module, const char* name) {
  const auto& image = *reinterpret_cast<const host_module_image*>(module);
  for (std::uint64_t i = 0; i < image.count; ++i) {
    if (std::strcmp(image.entries[i].name, name) == 0) {
      const void* const entry = &image.entries[i];
      *function = static_cast<abi::function>(const_cast<void*>(entry));  // as above
      return abi::results::success;
    }
  }
  return abi::results::not_found;
}

abi::result launch(abi::function function,
                   unsigned int grid_x,
                   unsigned int grid_y,
                   unsigned int grid_z,
                   unsigned int block_x,
                   unsigned int block_y,
                   unsigned int block_z,
                   unsigned int /*shared_bytes*/,
                   abi::stream /*stream*/,
                   void** arguments,
                   void** /*extra*/) {
  reinterpret_cast<const host_kernel_entry*>(function)->function(
      arguments, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z});
  return abi::results::success;
}

void describe_device(cuda::api& table) {
  table.cuDeviceGetCount = [](int* count) {
    *count = 1;
    return abi::results::success;
  };
  table.cuDeviceGet = [](abi::device* device, int ordinal) {
    *device = ordinal;
    return abi::results::success;
  };
  table.cuDeviceGetName = [](char* name, int length, abi::device) {
    static_cast<void>(std::snprintf(name, static_cast<std::size_t>(length), "inline"));
    return abi::results::success;
  };
  table.cuDeviceGetPCIBusId = table.cuDeviceGetName;
  table.cuDeviceGetUuid_v2 = [](abi::uuid* id, abi::device) {
    *id = {};
    return abi::results::success;
  };
  table.cuDeviceTotalMem_v2 = [](std::size_t* bytes, abi::device) {
    *bytes = std::size_t{1} << 30U;
    return abi::results::success;
  };
  table.cuDeviceGetAttribute = [](int* value, int, abi::device) {
    *value = 4;
    return abi::results::success;
  };
}

}  // namespace

cuda::driver inline_driver() {
  cuda::api table;
  describe_device(table);
  table.cuGetErrorName = [](abi::result, const char** name) {
    *name = "CUDA_ERROR";
    return abi::results::success;
  };
  table.cuGetErrorString = table.cuGetErrorName;
  table.cuDevicePrimaryCtxRetain = [](abi::context* context, abi::device) {
    *context = nullptr;
    return abi::results::success;
  };
  table.cuDevicePrimaryCtxRelease_v2 = [](abi::device) { return abi::results::success; };
  table.cuCtxGetCurrent = [](abi::context* context) {
    *context = nullptr;
    return abi::results::success;
  };
  table.cuCtxSetCurrent = [](abi::context) { return abi::results::success; };
  table.cuModuleLoadData = load_module;
  table.cuModuleUnload = [](abi::module) { return abi::results::success; };
  table.cuModuleGetFunction = find_function;
  table.cuLaunchKernel = launch;
  return cuda::driver::from_table(table, diagnostics{});
}

kernels::kernel_module inline_kernels() {
  return kernels::kernel_module::load(cuda::device::open(inline_driver(), 0),
                                      kernels::image_kind::host);
}

}  // namespace spark_comm::test
