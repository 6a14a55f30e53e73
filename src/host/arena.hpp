// SPDX-License-Identifier: AGPL-3.0-only
// Memory that another process can map: a memfd, mapped here, handed out in ranges. Nothing of it
// has a name, so nothing is left behind when the process is killed.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <sys/types.h>

namespace spark_comm::host {

/// Ranges of [0, bytes) in use and free. Pure bookkeeping.
class range_allocator {
 public:
  explicit range_allocator(std::size_t bytes) : free_{{0, bytes}}, total_(bytes) {}

  /// First fit. `alignment` is a power of two; `bytes` is rounded up to 256.
  [[nodiscard]] std::optional<std::size_t> allocate(std::size_t bytes, std::size_t alignment);

  /// Gives back what `allocate` returned for `bytes`.
  void release(std::size_t offset, std::size_t bytes);

  [[nodiscard]] bool is_empty() const noexcept {
    return free_.size() == 1 && free_.begin()->second == total_;
  }

 private:
  std::map<std::size_t, std::size_t> free_;  // offset to bytes; neighbours are merged
  std::size_t total_;
};

/// One memfd and its mapping; sparse, so untouched memory costs nothing.
class arena {
 public:
  /// Null when the system refuses.
  [[nodiscard]] static std::unique_ptr<arena> create(std::size_t bytes);

  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;
  arena(arena&&) = delete;
  arena& operator=(arena&&) = delete;
  ~arena();

  [[nodiscard]] std::byte* base() const noexcept { return base_; }

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  /// Tells this memfd from any other that lives or lived under the same descriptor number.
  [[nodiscard]] ino_t inode() const noexcept { return inode_; }

  [[nodiscard]] range_allocator& ranges() noexcept { return ranges_; }

  /// Gives the whole pages of a range back to the system.
  void discard(std::size_t offset, std::size_t bytes) noexcept;

 private:
  arena(int descriptor, ino_t inode, std::byte* base, std::size_t bytes)
      : descriptor_(descriptor), inode_(inode), base_(base), bytes_(bytes), ranges_(bytes) {}

  int descriptor_;
  ino_t inode_;
  std::byte* base_;
  std::size_t bytes_;
  range_allocator ranges_;
};

}  // namespace spark_comm::host
