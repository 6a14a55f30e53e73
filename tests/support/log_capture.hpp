// SPDX-License-Identifier: AGPL-3.0-only
// Keeps what is reported, so that a test can read it.
#pragma once

#include <spark_comm/core/diagnostics.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace spark_comm::testing {

class log_capture {
 public:
  [[nodiscard]] diagnostics log() const {
    return diagnostics{[kept = kept_](const diagnostic& message) {
      const std::scoped_lock lock{kept->mutex};
      kept->messages.push_back(message);
    }};
  }

  [[nodiscard]] std::vector<diagnostic> messages() const {
    const std::scoped_lock lock{kept_->mutex};
    return kept_->messages;
  }

  [[nodiscard]] std::size_t size() const { return messages().size(); }

  /// All texts, one a line.
  [[nodiscard]] std::string text() const {
    std::string joined;
    for (const diagnostic& message : messages()) {
      joined += message.text + "\n";
    }
    return joined;
  }

 private:
  struct messages_kept {
    std::mutex mutex;
    std::vector<diagnostic> messages;
  };

  std::shared_ptr<messages_kept> kept_ = std::make_shared<messages_kept>();
};

}  // namespace spark_comm::testing
