// SPDX-License-Identifier: AGPL-3.0-only
#include "progress_bar.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace spark_comm::app {

std::string render_progress(std::size_t done, std::size_t total, std::string_view what) {
  constexpr std::size_t width = 20;
  const std::size_t filled = total == 0 ? 0 : std::min(width, done * width / total);
  return fmt::format(
      "[{:#<{}}{:-<{}}] {}/{} {}", "", filled, "", width - filled, done, total, what);
}

progress_bar::progress_bar() : is_terminal_(::isatty(STDERR_FILENO) == 1) {}

progress_bar::~progress_bar() {
  hide();
}

void progress_bar::show(std::size_t done, std::size_t total, std::string_view what) {
  if (!is_terminal_) {
    return;
  }
  hide();
  std::fputs(render_progress(done, total, what).c_str(), stderr);
  std::fflush(stderr);
  is_shown_ = true;
}

void progress_bar::hide() noexcept {
  if (is_shown_) {
    // Back to the first column, and clear to the end of the line.
    std::fputs("\r\x1b[K", stderr);
    is_shown_ = false;
  }
}

}  // namespace spark_comm::app
