// SPDX-License-Identifier: AGPL-3.0-only
// What a thread has collected since its outermost group_scope began.
//
// Operations are collected here and not in NCCL: nothing native is open between the calls, so that
// a scope left by an exception drops its operations without a trace, and nothing of them is
// launched.
#pragma once

#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/issue.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/error.hpp>

#include <optional>
#include <vector>

namespace spark_comm::detail {

/// One thread's open group.
class group_context {
 public:
  /// Throws what `submit` throws for a communicator that cannot take operations.
  void collect(communicator_core& core, const operation& op);

  void open() noexcept { ++depth_; }

  /// A call inside the group was refused: should the program swallow that error, the outermost
  /// `commit` throws it, and nothing of the group is launched. The first one counts.
  void refuse(const error& cause);

  /// Ends the innermost scope. At the outermost, launches everything, or drops it when any scope of
  /// the group was left without a commit.
  void commit();
  void drop() noexcept;

  [[nodiscard]] bool is_open() const noexcept { return depth_ > 0; }

 private:
  int depth_ = 0;
  bool is_dropped_ = false;
  std::optional<error> refused_;
  std::vector<batch> batches_;
};

/// The calling thread's group. It is the thread's because NCCL's is: operations of a thread belong
/// to its own group, whatever other threads have open.
[[nodiscard]] group_context& this_thread_group() noexcept;

/// The same, or null when the thread has none open.
[[nodiscard]] group_context* open_group() noexcept;

/// Throws `cause`, for a call that was refused; the thread's group, if one is open, keeps it.
[[noreturn]] void throw_refusal(const error& cause);

}  // namespace spark_comm::detail
