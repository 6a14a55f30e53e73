// SPDX-License-Identifier: AGPL-3.0-only
#include "module.hpp"

#include "callback_scope.hpp"
#include "driver_abi.hpp"
#include "handle_registry.hpp"
#include "host_module.hpp"
#include "queue_item.hpp"
#include "task.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm::host {

namespace {

// Parameters one behind the other, each aligned for any type.
struct launch {
  host_kernel_entry entry;
  host_dimensions grid;
  host_dimensions block;
  std::vector<std::max_align_t> storage;
  std::vector<std::size_t> offsets;  // in elements of storage
};

task run_kernel(std::shared_ptr<const launch> what) {
  // The kernel may write to its parameters, and a graph runs the launch again: each run has a copy.
  std::vector<std::max_align_t> storage = what->storage;
  std::vector<void*> arguments;
  arguments.reserve(what->offsets.size());
  for (const std::size_t offset : what->offsets) {
    arguments.push_back(&storage[offset]);
  }
  const callback_scope scope;
  what->entry.function(arguments.data(), what->grid, what->block);
  co_return;
}

}  // namespace

driver::result load_module(const void* image, std::shared_ptr<module>& loaded) {
  if (image == nullptr) {
    return driver::invalid_value;
  }
  std::uint64_t magic = 0;
  std::memcpy(&magic, image, sizeof(magic));
  if (magic != host_module_magic) {
    return driver::no_binary_for_gpu;
  }
  const auto& table = *static_cast<const host_module_image*>(image);
  loaded = std::make_shared<module>();
  for (std::uint64_t index = 0; index < table.count; ++index) {
    const host_kernel_entry& entry = table.entries[index];
    if (entry.name == nullptr || entry.function == nullptr ||
        (entry.argument_count > 0 && entry.argument_bytes == nullptr)) {
      return driver::no_binary_for_gpu;
    }
    loaded->add(entry);
  }
  return driver::success;
}

void* module::handle_of(const std::string& name, handle_registry<kernel>& kernels) {
  const std::lock_guard lock{mutex_};
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) {
    return nullptr;
  }
  void*& handle = handles_[name];
  if (handle == nullptr) {
    handle = kernels.insert(std::make_shared<kernel>(kernel{.entry = entry->second}));
  }
  return handle;
}

void module::drop_handles(handle_registry<kernel>& kernels) noexcept {
  const std::lock_guard lock{mutex_};
  for (const auto& [name, handle] : handles_) {
    static_cast<void>(kernels.remove(handle));
  }
  handles_.clear();
}

bool is_launchable(const host_kernel_entry& entry,
                   host_dimensions grid,
                   host_dimensions block,
                   void* const* arguments) noexcept {
  const auto is_empty = [](const host_dimensions& each) {
    return each.x == 0 || each.y == 0 || each.z == 0;
  };
  if (is_empty(grid) || is_empty(block)) {
    return false;
  }
  if (entry.argument_count == 0) {
    return true;
  }
  return arguments != nullptr &&
         std::all_of(arguments, arguments + entry.argument_count, [](const void* argument) {
           return argument != nullptr;
         });
}

queue_item make_launch(const host_kernel_entry& entry,
                       host_dimensions grid,
                       host_dimensions block,
                       void* const* arguments) {
  auto what = std::make_shared<launch>();
  what->entry = entry;
  what->grid = grid;
  what->block = block;
  for (std::uint32_t index = 0; index < entry.argument_count; ++index) {
    const std::size_t bytes = entry.argument_bytes[index];
    const std::size_t offset = what->storage.size();
    const std::size_t elements = (bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t);
    what->offsets.push_back(offset);
    what->storage.resize(offset + elements);
    std::memcpy(&what->storage[offset], arguments[index], bytes);
  }
  const bool is_brief = (entry.flags & host_kernel_never_waits) != 0;
  return {
      .make = [what = std::shared_ptr<const launch>{std::move(what)}] { return run_kernel(what); },
      .kind = is_brief ? item_kind::brief : item_kind::blocking};
}

}  // namespace spark_comm::host
