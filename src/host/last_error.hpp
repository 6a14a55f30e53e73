// SPDX-License-Identifier: AGPL-3.0-only
// The text behind ncclGetLastError: one for the whole process, the last warning of any thread.
#pragma once

#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>

namespace spark_comm::host::nccl {

/// Keeps `text` as the last error, cut to NCCL's 1024 bytes.
void remember_error(std::string_view text) noexcept;

/// The last text, in memory of the calling thread; valid until its next call.
[[nodiscard]] const char* last_error() noexcept;

/// NCCL's text for a result; never null.
[[nodiscard]] const char* text_of_result(int code) noexcept;

/// "strerror (number)" for an errno value.
[[nodiscard]] std::string text_of_errno(int number);

/// Remembers why, and returns `code`: `return refuse(results::invalid_usage, "...", ...);`
template <typename... Arguments>
[[nodiscard]] int refuse(int code,
                         fmt::format_string<Arguments...> format,
                         Arguments&&... arguments) {
  remember_error(fmt::format(format, std::forward<Arguments>(arguments)...));
  return code;
}

}  // namespace spark_comm::host::nccl
