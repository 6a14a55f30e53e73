// SPDX-License-Identifier: AGPL-3.0-only
#include "memory_estimate.hpp"

#include "exit_code.hpp"
#include "operation.hpp"
#include "quantity.hpp"

#include <spark_comm/core/data_type.hpp>

#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <string>

namespace spark_comm::app {

std::uint64_t buffer_bytes(operation what,
                           int world_size,
                           std::size_t count,
                           data_type dtype) noexcept {
  const buffer_shape shape = shape_of(what, world_size, count);
  return static_cast<std::uint64_t>(shape.input + shape.output) * size_of(dtype);
}

void require_memory(const memory_need& need, std::uint64_t free_bytes, const std::string& where) {
  const std::uint64_t usable = free_bytes / 2;
  if (need.per_rank <= usable / static_cast<std::uint64_t>(need.ranks_sharing)) {
    return;
  }
  throw usage_failure(fmt::format(
      "needs {} of memory on {} ({} ranks x {} of buffers), but may use {}, half of the "
      "{} free: lower --max or --ranks",
      size_text(need.total()),
      where,
      need.ranks_sharing,
      size_text(need.per_rank),
      size_text(usable),
      size_text(free_bytes)));
}

}  // namespace spark_comm::app
