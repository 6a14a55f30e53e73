// SPDX-License-Identifier: AGPL-3.0-only
// Failures on command: what every exported call and every issued operation asks first. Without a
// script the question is one relaxed load.
#pragma once

#include "driver_abi.hpp"
#include "fault_script.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace spark_comm::host {

/// Whether the process has a script.
enum class fault_state : std::uint8_t {
  unread,  ///< Nobody has looked yet.
  none,
  loaded,
  refused,  ///< There is one, and it is wrong: every call fails.
};

/// Read with relaxed order: whoever finds a script takes its lock.
extern std::atomic<fault_state> process_fault_state;

[[nodiscard]] inline bool may_have_faults() noexcept {
  return process_fault_state.load(std::memory_order_relaxed) != fault_state::none;
}

/// A call that begins.
struct faultable_call {
  std::string_view name;
  int rank = any_rank;                    ///< Where the call itself knows it.
  std::function<bool()> is_aborted = {};  ///< What ends a hang; empty when nothing does.
  int aborted_code = 0;                   ///< What a hang returns then.
  int refused_code = 0;                   ///< What every call returns when the script is wrong.
};

/// What is left for the call to do once delays, hangs and the like are over.
struct call_fault {
  std::optional<int> code;  ///< Return this.
  std::uint64_t polls =
      0;  ///< Be in progress for so many questions, then in the state `last_code`.
  int last_code = 0;
};

/// Counts the call and does what the rules say. May take long, may not come back.
[[nodiscard]] call_fault begin_call(const faultable_call& call);

/// What an operation that a rank issues shall do.
struct operation_fault {
  bool is_corrupt = false;
  int async_error = 0;  ///< Of its communicator, from now on; 0 for none.
};

/// Counts an operation of the rank. `has_result`: whether it writes memory of this rank.
[[nodiscard]] operation_fault begin_operation(int rank, bool has_result);

/// Runs the body of a driver call, as the rules want it.
template <typename Body>
[[nodiscard]] driver::result with_driver_faults(const char* name, Body&& body) noexcept {
  if (!may_have_faults()) {
    return body();
  }
  const call_fault fault = begin_call({.name = name, .refused_code = driver::invalid_value});
  if (!fault.code) {
    return body();
  }
  if (is_release(name)) {
    static_cast<void>(body());
  }
  return *fault.code;
}

}  // namespace spark_comm::host
