// SPDX-License-Identifier: AGPL-3.0-only
// Memory that outlives its process: a file mapped shared, with its space reserved beforehand.
#pragma once

#include <spark_comm/core/unique_handle.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace spark_comm::detail {

struct mapping_traits {
  using handle_type = void*;

  static constexpr void* null() noexcept { return nullptr; }

  void close(void* address) const noexcept;

  std::size_t length_bytes = 0;
};

using mapping = unique_handle<mapping_traits>;

/// A new file at `path` that begins with `head` and goes on with zero bytes, mapped shared. It
/// appears whole: what was at `path` before is replaced in one step, and a process that still has
/// that mapped keeps its own copy.
///
/// A store into the mapping cannot raise SIGBUS for want of space: it is reserved here.
/// Throws: system_failed with errno, the path, and for a full disk the bytes needed and free;
/// nothing is left behind.
[[nodiscard]] mapping map_new_file(const std::string& path,
                                   std::span<const std::byte> head,
                                   std::size_t length_bytes);

/// Zero bytes that belong to no file.
/// Throws: out_of_memory.
[[nodiscard]] mapping map_anonymous(std::size_t length_bytes);

}  // namespace spark_comm::detail
