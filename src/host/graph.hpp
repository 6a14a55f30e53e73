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
#include <vector>

namespace spark_comm::host {

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

/// Runs every node after those that it depends on. Independent nodes take turns on one thread.
[[nodiscard]] task run_graph(std::shared_ptr<const graph_plan> plan);

/// Enqueues one run of the graph.
[[nodiscard]] driver::result submit_graph(const stream_ptr& target,
                                          const std::shared_ptr<const graph_plan>& plan);

/// A CUgraph or CUgraphExec.
struct graph {
  std::shared_ptr<const graph_plan> plan;
};

}  // namespace spark_comm::host
