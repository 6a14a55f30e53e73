// SPDX-License-Identifier: AGPL-3.0-only
// A handle comes from `adopt` alone, has one owner, and is not a truth value by accident.
#include <spark_comm/core/unique_handle.hpp>

#include <utility>

struct traits {
  using handle_type = void*;

  static void* null() noexcept { return nullptr; }

  static void close(void*) noexcept {}
};

using handle = spark_comm::unique_handle<traits>;

void fragment(void* native) {
  handle owner = handle::adopt(native);
  handle other = std::move(owner);
  owner = std::move(other);
  const bool owns = static_cast<bool>(owner);
  void* const given = owner.release();
  static_cast<void>(owns);
  static_cast<void>(given);
#ifdef CASE_from_int
  handle made{0};
#endif
#ifdef CASE_from_null
  handle made{nullptr};
#endif
#ifdef CASE_copy
  handle made = owner;
#endif
#ifdef CASE_copy_assign
  other = owner;
#endif
#ifdef CASE_implicit_bool
  const bool implicit = owner;
#endif
#ifdef CASE_forgotten_release
  owner.release();
#endif
}
