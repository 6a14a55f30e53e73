// SPDX-License-Identifier: AGPL-3.0-only
#include "arena.hpp"

#include <cstddef>
#include <fcntl.h>
#include <iterator>
#include <memory>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

namespace spark_comm::host {

namespace {

constexpr std::size_t granule = 256;
constexpr std::size_t page = 4096;

constexpr std::size_t round_up(std::size_t value, std::size_t step) noexcept {
  return (value + step - 1) & ~(step - 1);
}

}  // namespace

std::optional<std::size_t> range_allocator::allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t wanted = round_up(bytes, granule);
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    const auto [start, length] = *at;
    const std::size_t offset = round_up(start, alignment);
    const std::size_t lead = offset - start;
    if (length < lead || length - lead < wanted) {
      continue;
    }
    const std::size_t rest = length - lead - wanted;
    if (lead == 0) {
      free_.erase(at);
    } else {
      at->second = lead;
    }
    if (rest > 0) {
      free_.emplace(offset + wanted, rest);
    }
    return offset;
  }
  return std::nullopt;
}

void range_allocator::release(std::size_t offset, std::size_t bytes) {
  const auto [added, is_new] = free_.emplace(offset, round_up(bytes, granule));
  auto at = added;
  if (const auto after = std::next(at);
      after != free_.end() && at->first + at->second == after->first) {
    at->second += after->second;
    free_.erase(after);
  }
  if (at != free_.begin()) {
    if (const auto before = std::prev(at); before->first + before->second == at->first) {
      before->second += at->second;
      free_.erase(at);
    }
  }
}

std::unique_ptr<arena> arena::create(std::size_t bytes) {
  const std::size_t whole = round_up(bytes, page);
  const int descriptor = memfd_create("spark_comm_host", MFD_CLOEXEC);
  if (descriptor < 0) {
    return nullptr;
  }
  struct stat status{};
  void* base = MAP_FAILED;
  if (ftruncate(descriptor, static_cast<off_t>(whole)) == 0 && fstat(descriptor, &status) == 0) {
    base = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  if (base == MAP_FAILED) {
    close(descriptor);
    return nullptr;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  return std::unique_ptr<arena>{
      new arena{descriptor, status.st_ino, static_cast<std::byte*>(base), whole}};
}

arena::~arena() {
  munmap(base_, bytes_);
  close(descriptor_);
}

void arena::discard(std::size_t offset, std::size_t bytes) noexcept {
  const std::size_t first = round_up(offset, page);
  const std::size_t last = (offset + bytes) & ~(page - 1);
  if (first < last) {
    static_cast<void>(fallocate(descriptor_,
                                FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(first),
                                static_cast<off_t>(last - first)));
  }
}

}  // namespace spark_comm::host
