// SPDX-License-Identifier: AGPL-3.0-only
// Recorded work: capture a stream into a graph, make it executable, launch it.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/handles.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

namespace spark_comm::cuda {

/// A graph that can be launched any number of times, one launch at a time.
class SPARK_COMM_API graph_exec {
 public:
  /// Order: enqueued on `s`, as one piece of work.
  /// Throws: invalid_usage when moved from.
  void launch(stream_ref s) const;

  [[nodiscard]] abi::graph_exec get() const noexcept { return handle_.get(); }

 private:
  friend class graph;
  graph_exec(device owner, unique_graph_exec handle);

  device owner_;
  unique_graph_exec handle_;
};

/// Recorded work that has not been made executable. NCCL's clean-up waits for every graph that
/// holds one of its operations, executable or not: let both go before the communicator.
class SPARK_COMM_API graph {
 public:
  /// Throws: invalid_usage when moved from.
  [[nodiscard]] graph_exec instantiate() const;

  [[nodiscard]] abi::graph get() const noexcept { return handle_.get(); }

 private:
  friend class capture_scope;
  graph(device owner, unique_graph handle);

  device owner_;
  unique_graph handle_;
};

/// While it lives, work enqueued on the stream is recorded instead of run.
///
/// Thread-local mode: what other threads do meanwhile does not break the capture. It has to end on
/// the thread that began it. Left without `end`, the recording is thrown away.
class SPARK_COMM_API capture_scope {
 public:
  [[nodiscard]] capture_scope(device where, stream_ref s);
  capture_scope(const capture_scope&) = delete;
  capture_scope& operator=(const capture_scope&) = delete;
  capture_scope(capture_scope&&) = delete;
  capture_scope& operator=(capture_scope&&) = delete;
  ~capture_scope();

  /// Ends the capture and gives what was recorded.
  /// Throws: invalid_usage when the capture was broken meanwhile, or ended before.
  [[nodiscard]] graph end();

 private:
  device owner_;
  stream_ref stream_;
  bool is_open_ = false;
};

}  // namespace spark_comm::cuda
