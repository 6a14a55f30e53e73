// SPDX-License-Identifier: AGPL-3.0-only
#include "graph.hpp"

#include "driver_abi.hpp"
#include "event.hpp"
#include "queue_item.hpp"
#include "stream.hpp"
#include "stream_state.hpp"
#include "task.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace spark_comm::host {

namespace {

// One launch: the nodes that may run now, with the tasks of those that were begun.
class graph_run {
 public:
  explicit graph_run(const graph_plan& plan)
      : plan_(plan), tasks_(plan.nodes.size()), missing_(plan.nodes.size()) {
    for (std::size_t index = 0; index < missing_.size(); ++index) {
      missing_[index] = plan.nodes[index].after.size();
      if (missing_[index] == 0) {
        open_.push_back(index);
      }
    }
  }

  // Advances whatever can; returns whether all nodes are over.
  bool advance() noexcept {
    // Nodes that become free are appended, and so get their turn in the same pass.
    for (std::size_t place = 0; place < open_.size();) {
      const std::size_t index = open_[place];
      if (advance_node(index)) {
        open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(place));
        release_followers(index);
      } else {
        ++place;
      }
    }
    return open_.empty();
  }

 private:
  bool advance_node(std::size_t index) noexcept {
    std::optional<task>& running = tasks_[index];
    if (!running) {
      running.emplace(plan_.nodes[index].work.make());
    }
    if (!running->advance()) {
      return false;
    }
    running.reset();
    return true;
  }

  void release_followers(std::size_t index) {
    for (const std::size_t follower : plan_.nodes[index].then) {
      if (--missing_[follower] == 0) {
        open_.push_back(follower);
      }
    }
  }

  const graph_plan& plan_;
  std::vector<std::optional<task>> tasks_;
  std::vector<std::size_t> missing_;  // predecessors that are not over
  std::vector<std::size_t> open_;
};

// Every node runs after those that it depends on; independent nodes take turns on one thread.
task run_graph(std::shared_ptr<const graph_plan> plan) {
  graph_run run{*plan};
  co_await until([&run] { return run.advance(); });
}

queue_item make_run(const std::shared_ptr<const graph_plan>& plan) {
  const bool may_block =
      std::any_of(plan->nodes.begin(), plan->nodes.end(), [](const graph_node& node) {
        return node.work.kind == item_kind::blocking;
      });
  return {.make = [plan] { return run_graph(plan); },
          .kind = may_block ? item_kind::blocking : item_kind::brief};
}

}  // namespace

driver::result executable::launch(const stream_ptr& target) {
  queue_item run = make_run(plan_);
  if (is_capturing(target)) {
    return submit(target, std::move(run));
  }
  const std::lock_guard lock{mutex_};
  if (latest_ != nullptr) {
    const driver::result ordered = wait_in_stream(target, latest_);
    if (ordered != driver::success) {
      return ordered;
    }
  }
  auto record = std::make_shared<event_record>();
  record->origin = target;
  record->position = target->push(std::move(run));
  latest_ = std::move(record);
  return driver::success;
}

}  // namespace spark_comm::host
