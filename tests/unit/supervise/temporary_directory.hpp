// SPDX-License-Identifier: AGPL-3.0-only
// A directory of a test's own, gone with the test.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX
#include <string>
#include <system_error>

namespace spark_comm {

class temporary_directory {
 public:
  temporary_directory() : path_((std::filesystem::temp_directory_path() / "spark_comm_XXXXXX")) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error{"cannot make " + path_};
    }
  }

  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  temporary_directory(temporary_directory&&) = delete;
  temporary_directory& operator=(temporary_directory&&) = delete;

  ~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace spark_comm
