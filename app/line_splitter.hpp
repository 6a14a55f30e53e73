// SPDX-License-Identifier: AGPL-3.0-only
// Turns the pieces that come out of a pipe into lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace spark_comm::app {

class line_splitter {
 public:
  /// A line longer than this is handed on in pieces, so that no child can fill our memory.
  static constexpr std::size_t longest_line = 4U << 20U;

  /// Calls `handle(line)` for every line that `piece` completes.
  template <typename Handle>
  void feed(std::string_view piece, const Handle& handle) {
    for (const char letter : piece) {
      if (letter == '\n' || pending_.size() >= longest_line) {
        finish(handle);
      }
      if (letter != '\n') {
        pending_ += letter;
      }
    }
  }

  /// The rest after the end, when there is any, or an empty line in the middle.
  template <typename Handle>
  void flush(const Handle& handle) {
    if (!pending_.empty()) {
      finish(handle);
    }
  }

 private:
  template <typename Handle>
  void finish(const Handle& handle) {
    std::string line;
    line.swap(pending_);
    handle(std::string_view{line});
  }

  std::string pending_;
};

}  // namespace spark_comm::app
