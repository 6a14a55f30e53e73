// SPDX-License-Identifier: AGPL-3.0-only
// A graph: captured work with its order, which a launch makes anew and runs as one item of a
// stream.
#pragma once

#include "driver_abi.hpp"
#include "queue_item.hpp"
#include "stream.hpp"
#include "task.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace spark_comm::host {

struct event_record;

/// One piece of captured work.
struct graph_node {
  queue_item work;
  std::vector<std::size_t> after;  ///< indices of the nodes that it depends on
  std::vector<std::size_t> then;   ///< indices of the nodes that depend on it
};

/// What a capture made. Does not change once the capture has ended; shared by the graph, by every
/// executable made of it and by every launch that is not finished.
struct graph_plan {
  std::vector<graph_node> nodes;
  std::vector<std::shared_ptr<void>> retained;
};

/// A CUgraph.
struct graph {
  std::shared_ptr<const graph_plan> plan;
};

/// A CUgraphExec.
/// Threads: any.
class executable {
 public:
  explicit executable(std::shared_ptr<const graph_plan> plan) : plan_(std::move(plan)) {}

  /// Enqueues one run, behind the stream's work and behind the launch before, wherever that was.
  /// In a captured stream it becomes a node.
  [[nodiscard]] driver::result launch(const stream_ptr& target);

 private:
  std::shared_ptr<const graph_plan> plan_;
  std::mutex mutex_;
  std::shared_ptr<event_record> latest_;
};

}  // namespace spark_comm::host
