// SPDX-License-Identifier: AGPL-3.0-only
// What this build is made of.
#pragma once

#include <string_view>

namespace spark_comm::app {

/// "0.1.0".
[[nodiscard]] std::string_view build_version() noexcept;

/// Abbreviated commit at configure time; "unknown" when the source was no git checkout.
[[nodiscard]] std::string_view build_commit() noexcept;

}  // namespace spark_comm::app
