// SPDX-License-Identifier: AGPL-3.0-only
// How far a job is, on a terminal that is not the output.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace spark_comm::app {

/// "[########------------] 8/20 1 MiB".
[[nodiscard]] std::string render_progress(std::size_t done,
                                          std::size_t total,
                                          std::string_view what);

/// Shows it on stderr while it lives, when stderr is a terminal; does nothing otherwise.
class progress_bar {
 public:
  progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  progress_bar(progress_bar&&) = delete;
  progress_bar& operator=(progress_bar&&) = delete;
  ~progress_bar();

  void show(std::size_t done, std::size_t total, std::string_view what);

  /// Takes the bar away, so that a line can be written.
  void hide() noexcept;

 private:
  bool is_terminal_;
  bool is_shown_ = false;
};

}  // namespace spark_comm::app
