// SPDX-License-Identifier: AGPL-3.0-only
// Sizes and durations as people write and read them on a command line.
#pragma once

#include <spark_comm/core/time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spark_comm::app {

/// Bytes of "8", "4K", "1M", "2G" or "1T" (K = 1024; lower case, "KiB" and "KB" mean the same).
/// Empty for anything else, a negative number or one that does not fit included.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text) noexcept;

/// The span of "30s", "500ms", "20us", "2m" or "1h"; a bare number is seconds.
/// Empty for anything else, a negative number or one that does not fit included.
[[nodiscard]] std::optional<duration> parse_duration(std::string_view text) noexcept;

/// "64 MiB", "1.5 GiB", "12 B": at most one digit after the point.
[[nodiscard]] std::string size_text(std::uint64_t bytes);

/// "30 s", "1.5 s", "500 ms", "20 us".
[[nodiscard]] std::string duration_text(duration span);

}  // namespace spark_comm::app
