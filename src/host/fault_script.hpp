// SPDX-License-Identifier: AGPL-3.0-only
// The fault script: text that says which call of which rank fails, when and how. Parsing only; what
// a rule does is in fault_injection. The grammar is in docs/host_runtime.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::host {

/// Any rank, and a call whose rank is not known.
inline constexpr int any_rank = -1;

/// What a rule waits for.
enum class fault_event : std::uint8_t {
  call,        ///< A call of the C interface begins.
  operations,  ///< The rank has issued a number of operations.
};

/// Which of the events that match a rule are meant.
enum class fault_occasion : std::uint8_t {
  every,
  nth,   ///< The one with the number `count`, and no other.
  from,  ///< That one and all after it.
};

enum class fault_action : std::uint8_t {
  delay,        ///< The call is made `time` later.
  give_back,    ///< The call fails with `code`.
  kill,         ///< SIGKILL to the own process.
  stop,         ///< SIGSTOP to the own process.
  freeze,       ///< The process is stopped for `time`.
  hang,         ///< The call does not come back until its communicator is aborted.
  in_progress,  ///< The communicator is in progress for `polls` questions, then in the state
                ///< `code`.
  async_error,  ///< The communicator's asynchronous error becomes `code`.
  corrupt,      ///< The next result has a wrong element.
};

struct fault_rule {
  int rank = any_rank;
  fault_event event = fault_event::call;
  std::string call = {};  ///< A name, `nccl*`, `cu*` or `*`.
  fault_occasion occasion = fault_occasion::every;
  std::uint64_t count = 0;  ///< Unit: calls or operations, from 1.
  fault_action action = fault_action::delay;
  int code = 0;
  std::uint64_t polls = 0;
  std::chrono::nanoseconds time{};
};

/// Where a script is wrong, and what would be right there. Line and column count from 1.
struct script_problem {
  std::size_t line = 0;
  std::size_t column = 0;
  std::string text;
};

struct parsed_script {
  std::vector<fault_rule> rules;  ///< Empty where there is a problem.
  std::optional<script_problem> problem;
};

/// Reads rules, one a line or between semicolons; `#` begins a comment.
[[nodiscard]] parsed_script parse_fault_script(std::string_view text);

/// "line 2, column 8: ..."
[[nodiscard]] std::string describe(const script_problem& problem);

/// Every call that can be made to fail: all that the host runtime exports but those that only name
/// an error.
[[nodiscard]] const std::vector<std::string_view>& fault_calls();

/// Whether `call` is what a rule's `pattern` means.
///
/// A pattern with an asterisk leaves out what programs poll with (ncclCommGetAsyncError,
/// cuEventQuery, cuStreamQuery): how often they are called depends on time, and a count of calls
/// must not.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view call) noexcept;

/// Whether a group gathers the call, and a non-blocking communicator is in progress after it.
[[nodiscard]] bool is_gathered(std::string_view call) noexcept;

/// Whether the call gives something back to the runtime, or is one without which nothing could be
/// given back (the context stack). Such a call does so even when a rule makes it fail, so that what
/// is alive at the end is what the program forgot.
[[nodiscard]] bool is_release(std::string_view call) noexcept;

}  // namespace spark_comm::host
