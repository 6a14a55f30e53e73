// SPDX-License-Identifier: AGPL-3.0-only
#include "ipc.hpp"

#include "driver_abi.hpp"
#include "memory.hpp"
#include "process.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <type_traits>
#include <unistd.h>
#include <vector>

namespace spark_comm::host {

namespace {

constexpr std::uint64_t handle_magic = 0x3163706974736f68U;  // "hostipc1"
constexpr std::size_t page = 4096;

// What the 64 bytes of a handle hold.
struct handle_content {
  std::uint64_t magic = handle_magic;
  std::uint64_t inode = 0;  // proves that the descriptor still is the same memfd
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::int32_t pid = 0;
  std::int32_t descriptor = -1;
};

static_assert(sizeof(handle_content) <= sizeof(driver::ipc_mem_handle));
static_assert(std::is_trivially_copyable_v<handle_content>);

bool is_same_memory(const handle_content& a, const handle_content& b) noexcept {
  return a.pid == b.pid && a.inode == b.inode && a.offset == b.offset;
}

// Maps the pages of the allocation; null when that is not possible.
std::byte* map_pages(const handle_content& content) {
  const std::string path =
      "/proc/" + std::to_string(content.pid) + "/fd/" + std::to_string(content.descriptor);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    return nullptr;
  }
  struct stat status{};
  void* mapped = MAP_FAILED;
  const std::size_t lead = content.offset % page;
  if (fstat(descriptor, &status) == 0 && status.st_ino == content.inode &&
      content.offset + content.bytes <= static_cast<std::uint64_t>(status.st_size)) {
    mapped = mmap(nullptr,
                  content.bytes + lead,
                  PROT_READ | PROT_WRITE,
                  MAP_SHARED,
                  descriptor,
                  static_cast<off_t>(content.offset - lead));
  }
  close(descriptor);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped) + lead;
}

}  // namespace

struct imported_memory::mapping {
  handle_content content;
  std::byte* address;
  int count;
};

imported_memory::imported_memory() = default;
imported_memory::~imported_memory() = default;

driver::result imported_memory::open_handle(const driver::ipc_mem_handle& handle,
                                            int device,
                                            void** address) {
  handle_content content;
  std::memcpy(&content, handle.reserved, sizeof(content));
  if (content.magic != handle_magic || content.bytes == 0 ||
      content.offset > UINT64_MAX - content.bytes) {
    return driver::invalid_value;
  }
  if (content.pid == getpid()) {
    return driver::invalid_context;
  }
  const std::lock_guard lock{mutex_};
  const auto open_one = std::find_if(mappings_.begin(), mappings_.end(), [&](const mapping& each) {
    return is_same_memory(each.content, content);
  });
  if (open_one != mappings_.end()) {
    ++open_one->count;
    *address = open_one->address;
    return driver::success;
  }
  std::byte* mapped = map_pages(content);
  if (mapped == nullptr) {
    return driver::map_failed;
  }
  mappings_.push_back({.content = content, .address = mapped, .count = 1});
  process().memory.enter_imported(mapped, content.bytes, device);
  *address = mapped;
  return driver::success;
}

driver::result imported_memory::close_handle(const void* address) {
  const std::lock_guard lock{mutex_};
  const auto at = std::find_if(mappings_.begin(), mappings_.end(), [&](const mapping& each) {
    return each.address == address;
  });
  if (at == mappings_.end()) {
    return driver::invalid_value;
  }
  if (--at->count > 0) {
    return driver::success;
  }
  const std::size_t lead = at->content.offset % page;
  process().memory.remove_imported(at->address);
  munmap(at->address - lead, at->content.bytes + lead);
  mappings_.erase(at);
  return driver::success;
}

driver::result export_memory(const void* address, driver::ipc_mem_handle& handle) {
  shared_location location;
  const memory_block block = process().memory.find(address);
  if (block.kind != memory_kind::device || !find_shared_location(address, location)) {
    return driver::invalid_value;
  }
  // As in CUDA, the handle is that of the whole allocation, wherever in it the address lies.
  const handle_content content{.inode = location.inode,
                               .offset = location.offset,
                               .bytes = block.bytes,
                               .pid = getpid(),
                               .descriptor = location.descriptor};
  handle = {};
  std::memcpy(handle.reserved, &content, sizeof(content));
  return driver::success;
}

}  // namespace spark_comm::host
