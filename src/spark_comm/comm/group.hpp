// SPDX-License-Identifier: AGPL-3.0-only
// Operations that are launched together.
#pragma once

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/export.hpp>

#include <thread>

namespace spark_comm {

/// From its construction to `commit`, operations of this thread on the communicator are collected.
///
/// Needed wherever a rank both sends and receives: outside a group they would wait for each other.
/// May be nested; the outermost `commit` launches. Belongs to the thread that made it.
/// Leaving the scope without `commit` drops what was collected: nothing of it is launched.
///
///     { group_scope g{comm}; send(comm, a, peer, s); recv(comm, b, peer, s); g.commit(); }
class SPARK_COMM_API group_scope {
 public:
  [[nodiscard]] explicit group_scope(communicator& comm);
  group_scope(const group_scope&) = delete;
  group_scope& operator=(const group_scope&) = delete;
  group_scope(group_scope&&) = delete;
  group_scope& operator=(group_scope&&) = delete;
  ~group_scope();

  /// Launches everything collected since the outermost scope began.
  ///
  /// Throws: invalid_usage from another thread or a second time; the first error of an operation
  /// inside, if one was swallowed; the native error. After a failure of the launch itself the
  /// communicator is broken.
  void commit();

 private:
  communicator* comm_;
  std::thread::id thread_;
  bool open_ = true;
};

}  // namespace spark_comm
