// SPDX-License-Identifier: AGPL-3.0-only
// Groups: calls between ncclGroupStart and ncclGroupEnd, remembered per thread and done at the end.
// A single call is a group of its own.
#pragma once

#include "communicator.hpp"
#include "launch.hpp"

#include <functional>
#include <vector>

namespace spark_comm::host::nccl {

/// Work at the end of a group other than launching: init, split, window registration.
struct group_job {
  /// Whose state the job is in progress on: the new communicator, or the parent.
  communicator_ptr owner;
  bool is_blocking = true;
  /// Does it; in a thread of its own where a group has several.
  std::function<int()> work;
  /// Shows the outcome to the program, before the owner's state says that it is over.
  std::function<void(int code)> conclude;
};

/// ncclGroupStart.
void open_group() noexcept;

/// ncclGroupEnd. The outermost end does the work, or drops all of it when a call of the group
/// failed. Returns the first error, or in_progress when the group's communicators are non-blocking.
[[nodiscard]] int close_group();

/// Leaves the thread's group open, as NCCL does when some calls fail.
void leak_group_depth() noexcept;

/// Whether this thread has a group open.
[[nodiscard]] bool is_in_group() noexcept;

/// Notes a call's failure, so that the group's end drops the group.
void fail_group(int code) noexcept;

/// Adds to the open group. Returns what NCCL refuses there: mixed blocking modes, mixed capture.
[[nodiscard]] int add_operation(const communicator_ptr& comm, issued_operation issued);
[[nodiscard]] int add_job(group_job job);

/// Does a teardown now, or at the group's end when one is open: whatever else the group does, and
/// after all flags of its aborts are raised.
void run_or_defer(std::function<void()> teardown);

/// ncclGroupSimulateEnd: closes a blocking group without doing its work. A non-blocking one is done
/// for real, as NCCL does.
[[nodiscard]] int simulate_group_end();

/// Forgets what the open group of this thread holds of a communicator that is going away.
void forget_in_group(const communicator_ptr& comm) noexcept;

/// Group of one call. Adds, closes, and returns the call's result.
template <typename Add>
[[nodiscard]] int run_as_group(Add add) {
  open_group();
  const int code = add();
  if (code != results::success) {
    fail_group(code);
  }
  const int end = close_group();
  return code != results::success ? code : end;
}

}  // namespace spark_comm::host::nccl
