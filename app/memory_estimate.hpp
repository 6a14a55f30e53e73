// SPDX-License-Identifier: AGPL-3.0-only
// How much memory a job needs, asked before any is allocated: a machine that swaps measures
// nothing, and one whose GPU shares its memory may not come back.
#pragma once

#include "operation.hpp"

#include <spark_comm/core/data_type.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace spark_comm::app {

/// Unit: bytes.
struct memory_need {
  std::uint64_t per_rank = 0;  ///< Input, output, guards and staging.
  int ranks_sharing = 1;       ///< Ranks whose buffers lie in the same memory.

  [[nodiscard]] std::uint64_t total() const noexcept {
    return per_rank * static_cast<std::uint64_t>(ranks_sharing);
  }
};

/// Of buffers for `count` elements a block.
[[nodiscard]] std::uint64_t buffer_bytes(operation what,
                                         int world_size,
                                         std::size_t count,
                                         data_type dtype) noexcept;

/// Throws: failure (usage) naming what is needed and what may be used, when `need` is more than
/// half of `free_bytes`.
void require_memory(const memory_need& need, std::uint64_t free_bytes, const std::string& where);

}  // namespace spark_comm::app
