// SPDX-License-Identifier: AGPL-3.0-only
// The live objects of one kind, by the handle that programs hold. A handle is a number that is
// never used twice, so a stale one is always recognised, and nothing a program passes is
// dereferenced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

namespace spark_comm::host {

/// Threads: any.
template <typename Object>
class handle_registry {
 public:
  /// `kind` goes into the upper bits, so that a handle of another kind is none of this one.
  explicit handle_registry(std::uint8_t kind) noexcept
      : next_((std::uintptr_t{kind} << 48U) + first_handle) {}

  [[nodiscard]] void* insert(std::shared_ptr<Object> object) {
    const std::unique_lock lock{mutex_};
    const std::uintptr_t handle = next_;
    objects_.emplace(handle, std::move(object));
    next_ += handle_step;
    return reinterpret_cast<void*>(handle);  // NOLINT(performance-no-int-to-ptr): opaque, see above
  }

  /// Null for a handle that is not live.
  [[nodiscard]] std::shared_ptr<Object> find(const void* handle) const noexcept {
    const std::shared_lock lock{mutex_};
    const auto at = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    return at == objects_.end() ? nullptr : at->second;
  }

  /// Takes the object out; null for a handle that is not live.
  [[nodiscard]] std::shared_ptr<Object> remove(const void* handle) noexcept {
    const std::unique_lock lock{mutex_};
    const auto at = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    if (at == objects_.end()) {
      return nullptr;
    }
    std::shared_ptr<Object> object = std::move(at->second);
    objects_.erase(at);
    return object;
  }

  [[nodiscard]] std::size_t size() const noexcept {
    const std::shared_lock lock{mutex_};
    return objects_.size();
  }

  /// Calls `visit(object)` for each live object, under the lock: `visit` must not come back here.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    const std::shared_lock lock{mutex_};
    for (const auto& entry : objects_) {
      visit(entry.second);
    }
  }

 private:
  // Far from null and from the small numbers that stand for CUDA's special streams.
  static constexpr std::uintptr_t first_handle = 0x1000;
  static constexpr std::uintptr_t handle_step = 16;

  mutable std::shared_mutex mutex_;
  std::unordered_map<std::uintptr_t, std::shared_ptr<Object>> objects_;
  std::uintptr_t next_;
};

}  // namespace spark_comm::host
