// SPDX-License-Identifier: AGPL-3.0-only
#include "last_error.hpp"

#include "nccl_abi.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/core.h>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>

namespace spark_comm::host::nccl {
namespace {

constexpr std::size_t capacity_bytes = 1024;

struct error_text {
  std::mutex mutex;
  std::array<char, capacity_bytes> text{};
};

error_text& process_text() noexcept {
  static error_text text;
  return text;
}

}  // namespace

void remember_error(std::string_view text) noexcept {
  error_text& kept = process_text();
  const std::scoped_lock lock{kept.mutex};
  const std::size_t length = std::min(text.size(), capacity_bytes - 1);
  std::copy_n(text.data(), length, kept.text.data());
  kept.text[length] = '\0';
}

const char* last_error() noexcept {
  // A copy for the thread: NCCL hands out the shared buffer, which another thread may be writing.
  static thread_local std::array<char, capacity_bytes> copy{};
  error_text& kept = process_text();
  const std::scoped_lock lock{kept.mutex};
  copy = kept.text;
  return copy.data();
}

const char* text_of_result(int code) noexcept {
  switch (code) {
    case results::success: return "no error";
    case results::unhandled_cuda_error:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case results::system_error:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case results::internal_error:
      return "internal error - please report this issue to the NCCL developers";
    case results::invalid_argument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case results::invalid_usage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case results::remote_error:  return "remote process exited or there was a network error";
    case results::in_progress:   return "NCCL operation in progress";
    case results::timeout:       return "timeout";
    default:                     return "unknown result code";
  }
}

std::string text_of_errno(int number) {
  return fmt::format("{} ({})", std::generic_category().message(number), number);
}

}  // namespace spark_comm::host::nccl
