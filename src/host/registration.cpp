// SPDX-License-Identifier: AGPL-3.0-only
#include "registration.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>

namespace spark_comm::host::nccl {

void* registration_table::add(const void* base, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(base);
  const std::byte* end = begin + bytes;
  const std::scoped_lock lock{mutex_};
  for (const auto& known : ranges_) {
    if (known->begin <= begin && end <= known->end) {
      ++known->uses;
      return known.get();
    }
  }
  ranges_.push_back(std::make_unique<range>(range{.begin = begin, .end = end, .uses = 1}));
  return ranges_.back().get();
}

bool registration_table::remove(const void* handle) noexcept {
  const std::scoped_lock lock{mutex_};
  const auto found =
      std::ranges::find_if(ranges_, [handle](const auto& each) { return each.get() == handle; });
  if (found == ranges_.end()) {
    return false;
  }
  if (--(*found)->uses == 0) {
    ranges_.erase(found);
  }
  return true;
}

}  // namespace spark_comm::host::nccl
