// SPDX-License-Identifier: AGPL-3.0-only
// The loaded CUDA driver (or the host runtime in its place) and the one way to check its answers.
#pragma once

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/api.hpp>

#include <memory>
#include <source_location>
#include <string>
#include <utility>

namespace spark_comm::cuda {

/// A loaded and initialised driver. Copies share the table; it stays loaded for ever.
/// Threads: any.
class SPARK_COMM_API driver {
 public:
  /// Loads `library` (`libcuda.so.1`, or a path), resolves every call and runs cuInit.
  /// Throws: not_supported naming the file and the first symbol that is missing, or the loader's
  /// words; device_failed when cuInit fails (no_device included, with CUDA's number in `native()`).
  [[nodiscard]] static driver load(const std::string& library, diagnostics log);

  /// A driver made of the given table, for tests; cuInit is not called.
  [[nodiscard]] static driver from_table(const api& table, diagnostics log);

  [[nodiscard]] const api& table() const noexcept { return state_->table; }

  [[nodiscard]] const diagnostics& log() const noexcept { return state_->log; }

  /// The file it was loaded from, as the loader resolved it.
  [[nodiscard]] const std::string& file() const noexcept { return state_->file; }

  /// CUDA version of the driver, 1000 x major + 10 x minor.
  [[nodiscard]] int version() const;

  [[nodiscard]] int device_count() const;

  /// Throws unless `code` is success: the code that `errc_of` gives, with number, name and text
  /// kept. `function` is a literal: the native function's name.
  void check(abi::result code,
             const char* function,
             std::source_location where = std::source_location::current()) const;

  /// The error that `check` throws, for those who keep it or say more.
  [[nodiscard]] error to_error(abi::result code,
                               const char* function,
                               std::source_location where = std::source_location::current()) const;

  /// For destructors: reports what `check` would have thrown, once for each function and code.
  void check_noexcept(abi::result code, const char* function) const noexcept;

  /// The native code with CUDA's name and text, for errors composed elsewhere.
  [[nodiscard]] native_code describe(abi::result code, const char* function) const;

 private:
  struct state {
    api table;
    diagnostics log;
    std::string file;
  };

  explicit driver(std::shared_ptr<const state> shared) : state_(std::move(shared)) {}

  std::shared_ptr<const state> state_;
};

/// Our code for a result of CUDA: out_of_memory; invalid_argument for an invalid value, device or
/// handle; not_supported; invalid_usage for everything about stream capture; device_failed for the
/// rest, unknown numbers included.
[[nodiscard]] SPARK_COMM_API errc errc_of(abi::result code) noexcept;

}  // namespace spark_comm::cuda
