// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/diagnostics.hpp>

#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace spark_comm {

struct diagnostics::shared_state {
  std::mutex mutex;
  diagnostics_sink sink;
  std::set<std::string, std::less<>> said;
};

namespace {

void write_to_stderr(const diagnostic& message) {
  if (message.level == severity::info) {
    return;
  }
  const std::string line =
      "spark_comm: " + std::string{name_of(message.level)} + ": " + message.text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);  // one write, so lines of ranks do not mix
}

}  // namespace

std::string_view name_of(severity level) noexcept {
  switch (level) {
    case severity::info:    return "info";
    case severity::warning: return "warning";
    case severity::error:   return "error";
  }
  return "unknown";
}

diagnostics::diagnostics() : diagnostics(write_to_stderr) {}

diagnostics::diagnostics(diagnostics_sink sink) : state_(std::make_shared<shared_state>()) {
  state_->sink = std::move(sink);
}

void diagnostics::report(severity level, std::string_view text) const noexcept {
  try {
    const std::scoped_lock lock{state_->mutex};
    if (state_->sink) {
      state_->sink({.level = level, .text = std::string{text}});
    }
  } catch (...) {
    // Nothing is left to tell it to; a report never brings the program down.
    std::fputs("spark_comm: error: a diagnostics sink threw\n", stderr);
  }
}

void diagnostics::report_once(severity level,
                              std::string_view cause,
                              std::string_view text) const noexcept {
  try {
    {
      const std::scoped_lock lock{state_->mutex};
      if (!state_->said.emplace(cause).second) {
        return;
      }
    }
    report(level, text);
  } catch (...) {
    report(level, text);
  }
}

void diagnostics::report(const std::exception& failure, std::string_view where) const noexcept {
  try {
    report(severity::error, std::string{where} + ": " + failure.what());
  } catch (...) {
    report(severity::error, failure.what());
  }
}

}  // namespace spark_comm
