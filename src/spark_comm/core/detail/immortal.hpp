// SPDX-License-Identifier: AGPL-3.0-only
// An object that is never destroyed.
#pragma once

namespace spark_comm::detail {

/// For what communicators need to their end: one of static storage may well be destroyed after the
/// library's own static objects would have been.
template <typename T>
class immortal {
 public:
  immortal() : value_{} {}

  immortal(const immortal&) = delete;
  immortal& operator=(const immortal&) = delete;
  immortal(immortal&&) = delete;
  immortal& operator=(immortal&&) = delete;

  ~immortal() {}  // NOLINT(modernize-use-equals-default): a union member's would be deleted

  [[nodiscard]] const T& get() const noexcept { return value_; }

 private:
  union {
    T value_;
  };
};

}  // namespace spark_comm::detail
