// SPDX-License-Identifier: AGPL-3.0-only
// The one owner of native handles: move, destroy and swap exist once, here.
// Classes that hold handles follow the rule of zero.
#pragma once

#include <cstddef>
#include <utility>

namespace spark_comm {

/// Owns one native handle.
///
/// Traits give `handle_type`, `null()` (the value that means "none") and `close(handle) noexcept`,
/// which reports what goes wrong and never throws. Traits may carry state, such as the driver table
/// that closes the handle; it travels with the handle.
template <typename Traits>
class unique_handle {
 public:
  using handle_type = typename Traits::handle_type;

  unique_handle() noexcept = default;
  unique_handle(std::nullptr_t) = delete;
  unique_handle(int) = delete;
  unique_handle(const unique_handle&) = delete;
  unique_handle& operator=(const unique_handle&) = delete;

  unique_handle(unique_handle&& other) noexcept
      : handle_(other.release()), traits_(std::move(other.traits_)) {}

  unique_handle& operator=(unique_handle&& other) noexcept {
    if (this != &other) {
      reset();
      traits_ = std::move(other.traits_);
      handle_ = other.release();
    }
    return *this;
  }

  ~unique_handle() { reset(); }

  /// Takes ownership of a handle that somebody else made.
  [[nodiscard]] static unique_handle adopt(handle_type handle, Traits traits = {}) noexcept {
    unique_handle owner;
    owner.handle_ = handle;
    owner.traits_ = std::move(traits);
    return owner;
  }

  [[nodiscard]] handle_type get() const noexcept { return handle_; }

  [[nodiscard]] const Traits& traits() const noexcept { return traits_; }

  explicit operator bool() const noexcept { return handle_ != Traits::null(); }

  /// Gives the handle away; the caller closes it.
  [[nodiscard]] handle_type release() noexcept { return std::exchange(handle_, Traits::null()); }

  /// Closes the handle now.
  void reset() noexcept {
    if (handle_ != Traits::null()) {
      traits_.close(std::exchange(handle_, Traits::null()));
    }
  }

 private:
  handle_type handle_ = Traits::null();
  [[no_unique_address]] Traits traits_{};
};

}  // namespace spark_comm
