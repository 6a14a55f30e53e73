// SPDX-License-Identifier: AGPL-3.0-only
#include "build_info.hpp"

#include <string_view>

namespace spark_comm::app {

// Both macros come from app/CMakeLists.txt.
std::string_view build_version() noexcept {
  return SPARK_COMM_VERSION;
}

std::string_view build_commit() noexcept {
  return SPARK_COMM_GIT_COMMIT;
}

}  // namespace spark_comm::app
