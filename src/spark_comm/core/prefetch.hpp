// SPDX-License-Identifier: AGPL-3.0-only
// Asks for memory ahead of its use: what the hot path writes next lies cold by then, and a store
// that misses holds up the first atomic of the launch behind it.
#pragma once

#include <cstddef>

namespace spark_comm {

/// The lines of `object` are fetched to be written. A hint: waits for nothing, fails for nothing.
template <typename T>
inline void prefetch_for_writing(const T* object) noexcept {
  constexpr std::size_t line_bytes = 64;
  const auto* const bytes = reinterpret_cast<const std::byte*>(object);
  for (std::size_t offset = 0; offset < sizeof(T); offset += line_bytes) {
    __builtin_prefetch(bytes + offset, 1);
  }
}

}  // namespace spark_comm
