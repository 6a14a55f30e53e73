// SPDX-License-Identifier: AGPL-3.0-only
// Registered ranges of a communicator. Registering buys nothing here; the rules are NCCL's.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace spark_comm::host::nccl {

/// Threads: any.
class registration_table {
 public:
  /// The handle of the range. A range inside a known one has the known one's handle, counted.
  [[nodiscard]] void* add(const void* base, std::size_t bytes);

  /// Takes one count back; false for an unknown handle.
  [[nodiscard]] bool remove(const void* handle) noexcept;

 private:
  struct range {
    const std::byte* begin;
    const std::byte* end;
    int uses;
  };

  std::mutex mutex_;
  std::vector<std::unique_ptr<range>> ranges_;
};

}  // namespace spark_comm::host::nccl
