// SPDX-License-Identifier: AGPL-3.0-only
// A loaded module image and its kernels.
#pragma once

#include "driver_abi.hpp"
#include "handle_registry.hpp"
#include "host_module.hpp"
#include "queue_item.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace spark_comm::host {

struct kernel {
  host_kernel_entry entry{};
};

/// Kernels by name, with the handles that were given out for them.
/// Threads: any.
class module {
 public:
  void add(const host_kernel_entry& entry) { entries_.emplace(entry.name, entry); }

  /// The handle of a kernel, the same at every call; null when there is no such kernel.
  [[nodiscard]] void* handle_of(const std::string& name, handle_registry<kernel>& kernels);

  /// Makes all handles invalid.
  void drop_handles(handle_registry<kernel>& kernels) noexcept;

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, host_kernel_entry> entries_;
  std::unordered_map<std::string, void*> handles_;
};

/// no_binary_for_gpu when the image is not one of the host runtime.
[[nodiscard]] driver::result load_module(const void* image, std::shared_ptr<module>& loaded);

/// Whether dimensions and arguments are what the kernel can be launched with.
[[nodiscard]] bool is_launchable(const host_kernel_entry& entry,
                                 host_dimensions grid,
                                 host_dimensions block,
                                 void* const* arguments) noexcept;

/// One launch, with its arguments copied.
[[nodiscard]] queue_item make_launch(const host_kernel_entry& entry,
                                     host_dimensions grid,
                                     host_dimensions block,
                                     void* const* arguments);

}  // namespace spark_comm::host
