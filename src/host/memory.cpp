// SPDX-License-Identifier: AGPL-3.0-only
#include "memory.hpp"

#include "arena.hpp"
#include "devices.hpp"
#include "driver_abi.hpp"
#include "process.hpp"
#include "stream.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace spark_comm::host {

namespace {

constexpr std::size_t arena_bytes = std::size_t{64} << 20U;
// Larger allocations get a memfd of their own, which goes back to the system when they are freed.
constexpr std::size_t largest_shared = std::size_t{16} << 20U;
constexpr std::size_t page = 4096;
constexpr std::size_t small_alignment = 256;
// Freed ranges from this size on give their pages back.
constexpr std::size_t discard_from = std::size_t{1} << 20U;

std::uintptr_t number(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

bool fits_into_machine(std::size_t bytes) noexcept {
  if (bytes > SIZE_MAX / 2) {
    return false;
  }
  const memory_figures figures = read_memory_figures();
  return figures.total_bytes == 0 || bytes <= figures.available_bytes;
}

// Every stream with unfinished work, and how far it has to come.
std::vector<std::pair<stream_ptr, std::uint64_t>> unfinished_work() {
  std::vector<std::pair<stream_ptr, std::uint64_t>> users;
  const auto note = [&users](const stream_ptr& each) {
    if (each != nullptr && each->completed() < each->submitted()) {
      users.emplace_back(each, each->submitted());
    }
  };
  process().streams.for_each(note);
  for (const stream_ptr& each : process().closing.alive()) {
    note(each);
  }
  for (const auto& entry : process().devices) {
    note(entry->default_stream);
  }
  return users;
}

}  // namespace

std::optional<memory_block> memory_table::carve(std::size_t bytes, int device, memory_kind kind) {
  const std::size_t alignment = bytes >= page ? page : small_alignment;
  const auto from = [&](const std::shared_ptr<arena>& source) -> std::optional<memory_block> {
    const std::optional<std::size_t> offset = source->ranges().allocate(bytes, alignment);
    if (!offset) {
      return std::nullopt;
    }
    return memory_block{.base = source->base() + *offset,
                        .bytes = bytes,
                        .device = device,
                        .kind = kind,
                        .from = source};
  };
  const bool is_large = bytes > largest_shared;
  if (!is_large) {
    for (const std::shared_ptr<arena>& shared : arenas_) {
      if (std::optional<memory_block> block = from(shared)) {
        return block;
      }
    }
  }
  if (!fits_into_machine(bytes)) {
    return std::nullopt;
  }
  const std::shared_ptr<arena> fresh = arena::create(is_large ? bytes : arena_bytes);
  if (fresh == nullptr) {
    return std::nullopt;
  }
  if (!is_large) {
    arenas_.push_back(fresh);
  }
  return from(fresh);
}

driver::result memory_table::allocate(std::size_t bytes, int device, memory_kind kind, void** out) {
  if (bytes == 0 || out == nullptr) {
    return driver::invalid_value;
  }
  const std::unique_lock lock{mutex_};
  sweep();
  const std::optional<memory_block> block = carve(bytes, device, kind);
  if (!block) {
    return driver::out_of_memory;
  }
  blocks_.emplace(number(block->base), *block);
  *out = block->base;
  return driver::success;
}

driver::result memory_table::release(void* address, memory_kind kind) {
  std::vector<std::pair<stream_ptr, std::uint64_t>> users = unfinished_work();
  const std::unique_lock lock{mutex_};
  const auto at = blocks_.find(number(address));
  if (at == blocks_.end() || at->second.kind != kind) {
    return driver::invalid_value;
  }
  retired_.push_back({.block = std::move(at->second), .users = std::move(users)});
  blocks_.erase(at);
  sweep();
  return driver::success;
}

void memory_table::recycle(const memory_block& block) {
  const auto offset = static_cast<std::size_t>(block.base - block.from->base());
  block.from->ranges().release(offset, block.bytes);
  if (block.bytes >= discard_from) {
    block.from->discard(offset, block.bytes);
  }
}

void memory_table::sweep() {
  std::erase_if(retired_, [this](retired_block& retired) {
    std::erase_if(retired.users,
                  [](const auto& user) { return user.first->completed() >= user.second; });
    if (!retired.users.empty()) {
      return false;
    }
    recycle(retired.block);
    return true;
  });
}

memory_block memory_table::find(const void* address) const noexcept {
  const std::shared_lock lock{mutex_};
  auto after = blocks_.upper_bound(number(address));
  if (after == blocks_.begin()) {
    return {};
  }
  const memory_block& block = std::prev(after)->second;
  return number(address) - number(block.base) < block.bytes ? block : memory_block{};
}

void memory_table::enter_imported(std::byte* base, std::size_t bytes, int device) {
  const std::unique_lock lock{mutex_};
  blocks_.emplace(number(base),
                  memory_block{.base = base,
                               .bytes = bytes,
                               .device = device,
                               .kind = memory_kind::imported,
                               .from = nullptr});
}

void memory_table::remove_imported(const std::byte* base) noexcept {
  const std::unique_lock lock{mutex_};
  blocks_.erase(number(base));
}

std::size_t memory_table::count(memory_kind kind) const noexcept {
  const std::shared_lock lock{mutex_};
  return static_cast<std::size_t>(
      std::count_if(blocks_.begin(), blocks_.end(), [kind](const auto& entry) {
        return entry.second.kind == kind;
      }));
}

bool find_shared_location(const void* address, shared_location& location) noexcept {
  const memory_block block = process().memory.find(address);
  if (block.from == nullptr) {
    return false;
  }
  location = {.descriptor = block.from->descriptor(),
              .inode = block.from->inode(),
              .offset = static_cast<std::size_t>(block.base - block.from->base()),
              .arena_bytes = block.from->bytes()};
  return true;
}

bool find_allocation(const void* address, allocation_info& info) noexcept {
  const memory_block block = process().memory.find(address);
  if (block.base == nullptr) {
    return false;
  }
  info = {.base = block.base, .bytes = block.bytes, .device = block.device};
  return true;
}

void* allocate_device_memory(std::size_t bytes) noexcept {
  void* address = nullptr;
  const int device = current_device();
  if (device < 0) {
    return nullptr;
  }
  try {
    const driver::result result =
        process().memory.allocate(bytes, device, memory_kind::device, &address);
    return result == driver::success ? address : nullptr;
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory, which null says
    return nullptr;
  }
}

bool free_device_memory(void* address) noexcept {
  try {
    return process().memory.release(address, memory_kind::device) == driver::success;
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory while freeing: nothing was freed
    return false;
  }
}

}  // namespace spark_comm::host
