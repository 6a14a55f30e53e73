// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/api.hpp>
#include <spark_comm/cuda/detail/relaxed_capture.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace spark_comm::cuda {
namespace {

abi::device_ptr as_device_ptr(const void* address) noexcept {
  return std::bit_cast<std::uintptr_t>(address);
}

void require_bytes(std::size_t bytes) {
  if (bytes == 0) {
    throw error{errc::invalid_argument, "a buffer of 0 bytes was asked for"};
  }
}

void require_address(const void* address, const char* message) {
  if (address == nullptr) {
    throw error{errc::invalid_argument, message};
  }
}

// Runs a call that frees memory with its device current. Freeing counts as unsafe during another
// thread's capture, hence the relaxed mode.
template <typename Free>
void free_noexcept(const device& owner, const char* function, const Free& free) noexcept {
  try {
    const device_scope scope{owner};
    const detail::relaxed_capture relaxed{owner.loaded_driver()};
    owner.loaded_driver().check_noexcept(free(owner.loaded_driver().table()), function);
  } catch (const std::exception& failure) {
    owner.loaded_driver().log().report(failure, function);
  }
}

}  // namespace

struct device_buffer::block {
  block(device where, std::size_t size) : owner(std::move(where)), bytes(size) {}

  block(const block&) = delete;
  block& operator=(const block&) = delete;
  block(block&&) = delete;
  block& operator=(block&&) = delete;

  ~block() {
    if (address == nullptr) {
      return;
    }
    for (const auto& each : watchers) {
      if (const auto watcher = each.lock()) {
        (*watcher)();
      }
    }
    if (free_adopted) {
      free_adopted(address);
      return;
    }
    free_noexcept(owner, "cuMemFree_v2", [this](const api& table) {
      return table.cuMemFree_v2(as_device_ptr(address));
    });
  }

  device owner;
  std::size_t bytes;
  void* address = nullptr;
  std::function<void(void*)> free_adopted;
  std::mutex mutex;  // guards the next
  std::vector<std::weak_ptr<std::function<void()>>> watchers;
};

device_buffer::device_buffer(std::unique_ptr<block, void (*)(block*)> owned)
    : block_(std::move(owned)) {}

device_buffer device_buffer::allocate(const device& where, std::size_t bytes) {
  require_bytes(bytes);
  device_buffer made{{new block{where, bytes}, [](block* owned) { delete owned; }}};
  const driver& loaded = where.loaded_driver();
  const device_scope scope{where};
  const detail::relaxed_capture relaxed{loaded};
  abi::device_ptr address = 0;
  loaded.check(loaded.table().cuMemAlloc_v2(&address, bytes), "cuMemAlloc_v2");
  made.block_->address = std::bit_cast<void*>(static_cast<std::uintptr_t>(address));
  return made;
}

device_buffer device_buffer::adopt(const device& where,
                                   void* address,
                                   std::size_t bytes,
                                   std::function<void(void*)> free) {
  require_bytes(bytes);
  require_address(address, "the adopted address is null");
  if (!free) {
    throw error{errc::invalid_argument, "adopted memory needs a function that frees it"};
  }
  device_buffer made{{new block{where, bytes}, [](block* owned) { delete owned; }}};
  made.block_->free_adopted = std::move(free);
  made.block_->address = address;
  return made;
}

void* device_buffer::address() const noexcept {
  return block_ ? block_->address : nullptr;
}

std::size_t device_buffer::size_bytes() const noexcept {
  return block_ ? block_->bytes : 0;
}

const device& device_buffer::owner() const noexcept {
  return block_->owner;
}

std::shared_ptr<void> device_buffer::watch(std::function<void()> before_free) const {
  if (!block_) {
    throw error{errc::invalid_usage, "the buffer was moved from"};
  }
  auto watcher = std::make_shared<std::function<void()>>(std::move(before_free));
  const std::scoped_lock lock{block_->mutex};
  std::erase_if(block_->watchers, [](const auto& each) { return each.expired(); });
  block_->watchers.push_back(watcher);
  return watcher;
}

struct pinned_buffer::block {
  block(device where, std::size_t size) : owner(std::move(where)), bytes(size) {}

  block(const block&) = delete;
  block& operator=(const block&) = delete;
  block(block&&) = delete;
  block& operator=(block&&) = delete;

  ~block() {
    if (address != nullptr) {
      free_noexcept(owner, "cuMemFreeHost", [this](const api& table) {
        return table.cuMemFreeHost(address);
      });
    }
  }

  device owner;
  std::size_t bytes;
  void* address = nullptr;
};

pinned_buffer::pinned_buffer(std::unique_ptr<block, void (*)(block*)> owned)
    : block_(std::move(owned)) {}

pinned_buffer pinned_buffer::allocate(const device& where, std::size_t bytes) {
  require_bytes(bytes);
  pinned_buffer made{{new block{where, bytes}, [](block* owned) { delete owned; }}};
  const driver& loaded = where.loaded_driver();
  const device_scope scope{where};
  const detail::relaxed_capture relaxed{loaded};
  loaded.check(loaded.table().cuMemHostAlloc(
                   &made.block_->address,
                   bytes,
                   abi::flags::host_alloc_portable | abi::flags::host_alloc_device_map),
               "cuMemHostAlloc");
  return made;
}

void* pinned_buffer::address() const noexcept {
  return block_ ? block_->address : nullptr;
}

std::size_t pinned_buffer::size_bytes() const noexcept {
  return block_ ? block_->bytes : 0;
}

abi::device_ptr pinned_buffer::device_address() const {
  if (!block_) {
    throw error{errc::invalid_usage, "the pinned buffer was moved from"};
  }
  const driver& loaded = block_->owner.loaded_driver();
  const device_scope scope{block_->owner};
  abi::device_ptr address = 0;
  loaded.check(loaded.table().cuMemHostGetDevicePointer_v2(&address, block_->address, 0),
               "cuMemHostGetDevicePointer_v2");
  return address;
}

void copy_async(const device& where, void* to, const void* from, std::size_t bytes, stream_ref s) {
  if (bytes == 0) {
    return;
  }
  require_address(to, "the destination of a copy is null");
  require_address(from, "the source of a copy is null");
  const driver& loaded = where.loaded_driver();
  const device_scope scope{where};
  loaded.check(loaded.table().cuMemcpyAsync(as_device_ptr(to), as_device_ptr(from), bytes, s.get()),
               "cuMemcpyAsync");
}

void fill_async(
    const device& where, void* to, std::uint8_t value, std::size_t bytes, stream_ref s) {
  if (bytes == 0) {
    return;
  }
  require_address(to, "the memory to fill is null");
  const driver& loaded = where.loaded_driver();
  const device_scope scope{where};
  loaded.check(loaded.table().cuMemsetD8Async(as_device_ptr(to), value, bytes, s.get()),
               "cuMemsetD8Async");
}

}  // namespace spark_comm::cuda
