// SPDX-License-Identifier: AGPL-3.0-only
// Device and pinned host memory: ordinary memory of this machine, in arenas that peers can map, and
// the table that tells which allocation an address belongs to.
#pragma once

#include "arena.hpp"
#include "driver_abi.hpp"
#include "stream.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace spark_comm::host {

enum class memory_kind : std::uint8_t {
  device,    ///< cuMemAlloc
  pinned,    ///< cuMemHostAlloc
  imported,  ///< another process's, by cuIpcOpenMemHandle
};

struct memory_block {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  int device = -1;
  memory_kind kind = memory_kind::device;
  std::shared_ptr<arena> from;  ///< null for imported memory
};

/// Where a peer finds an allocation: what it opens is /proc/<pid>/fd/<descriptor>.
struct shared_location {
  int descriptor = -1;
  ino_t inode = 0;
  std::size_t offset = 0;       ///< of the allocation in the arena
  std::size_t arena_bytes = 0;  ///< how much can be mapped
};

/// The allocations of the process.
/// Threads: any.
class memory_table {
 public:
  /// Alignment: 256, from 4096 bytes on 4096. Untouched memory costs nothing; what is larger than
  /// the machine's available memory is refused.
  [[nodiscard]] driver::result allocate(std::size_t bytes,
                                        int device,
                                        memory_kind kind,
                                        void** out);

  /// invalid_value unless `address` is the start of an allocation of that kind. Memory that work
  /// enqueued before may still use is handed out again only when that work is over.
  [[nodiscard]] driver::result release(void* address, memory_kind kind);

  /// The allocation that holds the address; base null when there is none.
  [[nodiscard]] memory_block find(const void* address) const noexcept;

  /// Enters and removes memory that was mapped by other means.
  void enter_imported(std::byte* base, std::size_t bytes, int device);
  void remove_imported(const std::byte* base) noexcept;

  [[nodiscard]] std::size_t count(memory_kind kind) const noexcept;

 private:
  struct retired_block {
    memory_block block;
    std::vector<std::pair<stream_ptr, std::uint64_t>> users;
  };

  std::optional<memory_block> carve(std::size_t bytes, int device, memory_kind kind);
  void recycle(const memory_block& block);
  void sweep();

  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, memory_block> blocks_;  // by base address
  std::vector<std::shared_ptr<arena>> arenas_;     // small allocations share these
  std::vector<retired_block> retired_;
};

/// False when the address is not in memory that this process allocated.
[[nodiscard]] bool find_shared_location(const void* address, shared_location& location) noexcept;

}  // namespace spark_comm::host
