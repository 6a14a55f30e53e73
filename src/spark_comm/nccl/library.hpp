// SPDX-License-Identifier: AGPL-3.0-only
// The loaded NCCL (or the host runtime in its place): version, capabilities, checked calls.
#pragma once

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/nccl/api.hpp>

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace spark_comm::nccl {

/// The oldest NCCL that the library works with: 2.19, whose abort from another thread works.
inline constexpr int floor_version = 21900;

/// What newer libraries bring.
enum class capability : std::uint8_t {
  window,      ///< ncclCommWindowRegister, since 2.27.3.
  all_to_all,  ///< ncclAlltoAll, since 2.28.3.
  revoke,      ///< ncclCommRevoke, since 2.28.7.
  fp8,         ///< fp8 data types, since 2.24.3.
};

inline constexpr capability all_capabilities[] = {
    capability::window, capability::all_to_all, capability::revoke, capability::fp8};

[[nodiscard]] SPARK_COMM_API std::string_view name_of(capability what) noexcept;

/// The version code that brought it.
[[nodiscard]] SPARK_COMM_API int version_of(capability what) noexcept;

/// "2.28.9" for 22809.
[[nodiscard]] SPARK_COMM_API std::string version_text(int version_code);

/// A loaded library. Copies share the table; it stays loaded for ever.
/// Threads: any; the calls in the table have NCCL's own rules.
class SPARK_COMM_API library {
 public:
  /// Loads `name` and resolves every call.
  /// Throws: not_supported: cannot be loaded, lacks a required call (named: "is not NCCL" when it
  /// lacks ncclGetVersion), or is older than the floor (both versions named).
  [[nodiscard]] static library load(const std::string& name, diagnostics log);

  /// A library made of the given table, for tests.
  [[nodiscard]] static library from_table(const api& table, diagnostics log);

  [[nodiscard]] const api& table() const noexcept { return state_->table; }

  [[nodiscard]] const diagnostics& log() const noexcept { return state_->log; }

  [[nodiscard]] int version() const noexcept { return state_->version; }

  /// The file it was loaded from, as the loader resolved it.
  [[nodiscard]] const std::string& file() const noexcept { return state_->file; }

  /// Build id of that file (the ELF note), as hex; empty when it has none.
  [[nodiscard]] const std::string& build_id() const noexcept { return state_->build_id; }

  [[nodiscard]] bool supports(capability what) const noexcept;

  /// Throws not_supported naming the version that brings it.
  void require(capability what, std::source_location where = std::source_location::current()) const;

  /// Throws unless `code` is success. In-progress is not an error and must be handled before.
  void check(abi::result code,
             const char* function,
             std::source_location where = std::source_location::current()) const;

  /// The error that `check` throws, for those who keep it.
  [[nodiscard]] error to_error(abi::result code,
                               const char* function,
                               std::source_location where = std::source_location::current()) const;

  /// The native code with NCCL's text and its last warning in this process.
  [[nodiscard]] native_code describe(abi::result code, const char* function) const;

 private:
  struct state {
    api table;
    diagnostics log;
    int version = 0;
    std::string file;
    std::string build_id;
  };

  explicit library(std::shared_ptr<const state> shared) : state_(std::move(shared)) {}

  std::shared_ptr<const state> state_;
};

/// Our code for a result of NCCL. Unknown numbers are `internal`.
[[nodiscard]] SPARK_COMM_API errc errc_of(abi::result code) noexcept;

}  // namespace spark_comm::nccl
