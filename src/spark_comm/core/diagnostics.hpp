// SPDX-License-Identifier: AGPL-3.0-only
// Where the library says what it cannot throw: warnings, and failures inside destructors and
// threads.
#pragma once

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/export.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace spark_comm {

/// How loud a message is.
enum class severity : std::uint8_t {
  info,     ///< What was chosen and why; not shown by the default sink.
  warning,  ///< Works, but not as well or not as asked.
  error,    ///< Something failed where nothing could be thrown.
};

[[nodiscard]] SPARK_COMM_API std::string_view name_of(severity level) noexcept;

/// One message, one line.
struct diagnostic {
  severity level = severity::info;
  std::string text;
};

/// Takes messages. Called from any thread, one call at a time; must not throw and must not call
/// back into the object that reports.
using diagnostics_sink = std::function<void(const diagnostic&)>;

/// Hands messages to a sink, and says each cause only once.
///
/// Copies share the sink and the memory of what was said.
/// Threads: any.
class SPARK_COMM_API diagnostics {
 public:
  /// Warnings and errors go to stderr, one line each, after "spark_comm: ".
  diagnostics();
  explicit diagnostics(diagnostics_sink sink);

  /// Says it every time.
  void report(severity level, std::string_view text) const noexcept;

  /// Says it unless `cause` was reported before.
  void report_once(severity level, std::string_view cause, std::string_view text) const noexcept;

  /// For destructors and thread bodies: says what would have been thrown.
  void report(const std::exception& failure, std::string_view where) const noexcept;

 private:
  struct shared_state;
  std::shared_ptr<shared_state> state_;
};

}  // namespace spark_comm
