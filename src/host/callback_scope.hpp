// SPDX-License-Identifier: AGPL-3.0-only
// Marks the time in which a thread of the runtime is in code of the program: driver calls from
// there are refused, because they could wait for the very stream that waits for them.
#pragma once

namespace spark_comm::host {

class callback_scope {
 public:
  [[nodiscard]] callback_scope() noexcept { ++depth(); }

  callback_scope(const callback_scope&) = delete;
  callback_scope& operator=(const callback_scope&) = delete;
  callback_scope(callback_scope&&) = delete;
  callback_scope& operator=(callback_scope&&) = delete;

  ~callback_scope() { --depth(); }

  [[nodiscard]] static bool is_open() noexcept { return depth() > 0; }

 private:
  static int& depth() noexcept {
    thread_local int value = 0;
    return value;
  }
};

}  // namespace spark_comm::host
