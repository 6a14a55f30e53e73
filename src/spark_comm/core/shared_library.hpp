// SPDX-License-Identifier: AGPL-3.0-only
// Loading of vendor libraries at run time. A library stays loaded for the life of the process:
// NCCL's threads run in its code (unloading it crashes), so there is no close.
#pragma once

#include <string>

namespace spark_comm {

/// A loaded library; a view, because loading is for ever.
class shared_library {
 public:
  /// Throws: not_supported with the loader's words when `name` cannot be loaded.
  [[nodiscard]] static shared_library open(const std::string& name);

  /// Null when the library has no such symbol.
  [[nodiscard]] void* find(const char* symbol) const noexcept;

  /// The file that holds `address`, as the loader knows it; empty when unknown.
  [[nodiscard]] static std::string file_of(const void* address);

  /// What was asked for.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  shared_library(void* handle, std::string name);

  void* handle_;
  std::string name_;
};

}  // namespace spark_comm
