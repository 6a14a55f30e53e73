// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/detail/device_images.hpp>
#include <spark_comm/kernels/detail/geometry.hpp>
#include <spark_comm/kernels/detail/host_image.hpp>
#include <spark_comm/kernels/detail/kernel_table.hpp>
#include <spark_comm/kernels/module.hpp>

#include <array>
#include <exception>
#include <fmt/core.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm::kernels {

struct kernel_module::state {
  state(const cuda::device& where, int processors) : owner(where), multiprocessors(processors) {}

  state(const state&) = delete;
  state& operator=(const state&) = delete;
  state(state&&) = delete;
  state& operator=(state&&) = delete;

  ~state() {
    const cuda::driver& loaded = owner.loaded_driver();
    try {
      const cuda::device_scope scope{owner};
      for (const cuda::abi::module module : modules) {
        loaded.check_noexcept(loaded.table().cuModuleUnload(module), "cuModuleUnload");
      }
    } catch (const std::exception& failure) {
      loaded.log().report(failure, "unloading kernels");
    }
  }

  cuda::device owner;
  int multiprocessors;
  std::shared_ptr<const detail::host_module_image> host_image;  // outlives the modules made of it
  std::vector<cuda::abi::module> modules;
  std::array<cuda::abi::function, detail::kernel_slots> functions{};
};

namespace {

cuda::abi::module load_image(const cuda::device& where, const void* image) {
  const cuda::driver& loaded = where.loaded_driver();
  cuda::abi::module module = nullptr;
  const cuda::abi::result code = loaded.table().cuModuleLoadData(&module, image);
  if (code == cuda::abi::results::no_binary_for_gpu) {
    const cuda::device_info info = where.info();
    error_context context;
    context.device = where.ordinal();
    throw error{errc::not_supported,
                fmt::format("the kernels were built for {}, and {} has compute capability {}.{}",
                            available_on_gpu().architectures,
                            info.name,
                            info.compute_major,
                            info.compute_minor),
                std::move(context),
                loaded.describe(code, "cuModuleLoadData")};
  }
  loaded.check(code, "cuModuleLoadData");
  return module;
}

const void* gpu_image(detail::kernel_family family) {
  const void* image = detail::device_image(family);
  if (image == nullptr) {
    throw error{errc::not_supported,
                fmt::format("this build has no device kernels: {}", available_on_gpu().reason)};
  }
  return image;
}

}  // namespace

kernel_module::kernel_module(std::shared_ptr<const state> shared) : state_(std::move(shared)) {}

kernel_module kernel_module::load(const cuda::device& where, image_kind kind) {
  const cuda::driver& loaded = where.loaded_driver();
  const auto made = std::make_shared<state>(where, where.info().multiprocessors);
  const cuda::device_scope scope{where};
  if (kind == image_kind::host) {
    made->host_image = detail::make_host_image();
    made->modules.push_back(load_image(where, made->host_image.get()));
  }
  for (const detail::kernel_family family : detail::all_kernel_families) {
    if (kind == image_kind::gpu) {
      made->modules.push_back(load_image(where, gpu_image(family)));
    }
    for (const detail::kernel_key& key : detail::keys_of(family)) {
      const std::string name = name_of(key);
      loaded.check(loaded.table().cuModuleGetFunction(
                       &made->functions[slot_of(key)], made->modules.back(), name.c_str()),
                   "cuModuleGetFunction");
    }
  }
  return kernel_module{made};
}

const cuda::device& kernel_module::owner() const noexcept {
  return state_->owner;
}

int kernel_module::multiprocessors() const noexcept {
  return state_->multiprocessors;
}

void kernel_module::launch_raw(const detail::kernel_key& key,
                               const detail::launch_shape& shape,
                               void* parameters,
                               cuda::stream_ref s) const {
  const cuda::driver& loaded = state_->owner.loaded_driver();
  const cuda::device_scope scope{state_->owner};
  std::array<void*, 1> arguments = {parameters};
  loaded.check(loaded.table().cuLaunchKernel(state_->functions[slot_of(key)],
                                             shape.blocks,
                                             1,
                                             1,
                                             shape.threads,
                                             1,
                                             1,
                                             0,
                                             s.get(),
                                             arguments.data(),
                                             nullptr),
               "cuLaunchKernel");
}

}  // namespace spark_comm::kernels
