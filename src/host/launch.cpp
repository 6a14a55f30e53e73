// SPDX-License-Identifier: AGPL-3.0-only
#include "launch.hpp"

#include "collectives.hpp"
#include "communicator.hpp"
#include "fault_injection.hpp"
#include "last_error.hpp"
#include "launch_gate.hpp"
#include "nccl_abi.hpp"
#include "stopping_wait.hpp"
#include "stream.hpp"
#include "task.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace spark_comm::host::nccl {
namespace {

// How the streams of one launch meet. Counts runs, because a captured launch is replayed.
struct stream_meeting {
  std::atomic<std::uint64_t> arrivals{0};
  std::atomic<std::uint64_t> finished_runs{0};
  std::uint64_t others = 0;  ///< Streams beside the one that runs the launch.
  std::uint64_t begun_runs = 0;
};

// What a launch needs, shared by the stream's item and, when captured, by graphs.
struct launch_plan {
  communicator_ptr comm;
  std::vector<operation> operations;
  std::shared_ptr<stream_meeting> meeting;
  launch_gate::ticket ticket = launch_gate::no_ticket;
  bool is_captured = false;

  launch_plan() = default;
  launch_plan(const launch_plan&) = delete;
  launch_plan& operator=(const launch_plan&) = delete;
  launch_plan(launch_plan&&) = delete;
  launch_plan& operator=(launch_plan&&) = delete;

  // A launch that never came to run must not hold up the others.
  ~launch_plan() {
    if (is_captured) {
      --comm->captured;
    } else if (ticket != launch_gate::no_ticket) {
      comm->gate.give_up(ticket);
    }
  }
};

// Counts a run for those who wait for its end. Sequentially consistent against the abort flag:
// either the run sees the flag, or who raised it sees the run.
class run_scope {
 public:
  explicit run_scope(communicator& comm) noexcept : comm_(comm) { ++comm_.running; }

  run_scope(const run_scope&) = delete;
  run_scope& operator=(const run_scope&) = delete;
  run_scope(run_scope&&) = delete;
  run_scope& operator=(run_scope&&) = delete;

  ~run_scope() {
    if (has_entered_) {
      comm_.gate.leave();
      comm_.gate.give_up(ticket_);
    }
    --comm_.running;
  }

  [[nodiscard]] bool try_enter(launch_gate::ticket ticket) {
    has_entered_ = comm_.gate.try_enter(ticket);
    ticket_ = ticket;
    return has_entered_;
  }

 private:
  communicator& comm_;
  launch_gate::ticket ticket_ = launch_gate::no_ticket;
  bool has_entered_ = false;
};

// Tasks that make progress side by side.
class task_set {
 public:
  void add(task work) { pending_.push_back(std::move(work)); }

  /// Advances each as far as it goes; whether all are finished.
  [[nodiscard]] bool advance() noexcept {
    std::erase_if(pending_, [](task& each) { return each.advance(); });
    return pending_.empty();
  }

 private:
  std::vector<task> pending_;
};

// One after another, as one task.
task run_in_order(communicator& comm, std::vector<const operation*> operations) {
  for (const operation* op : operations) {
    task each = make_task(comm, *op);
    co_await until([&each] { return each.advance(); });
  }
}

// Collectives run in the order of issue; so do messages of one direction with one peer, since they
// share a channel. Everything else is independent.
task_set make_tasks(const launch_plan& plan) {
  using key = std::pair<operation_kind, int>;
  std::map<key, std::vector<const operation*>> chains;
  for (const operation& op : plan.operations) {
    const key chain =
        is_message(op.kind) ? key{op.kind, op.peer} : key{operation_kind::all_reduce, 0};
    chains[chain].push_back(&op);
  }
  task_set tasks;
  for (auto& [unused, operations] : chains) {
    tasks.add(operations.size() == 1 ? make_task(*plan.comm, *operations.front())
                                     : run_in_order(*plan.comm, std::move(operations)));
  }
  return tasks;
}

task run_launch(std::shared_ptr<launch_plan> plan) {
  communicator& comm = *plan->comm;
  run_scope scope{comm};
  if (plan->meeting != nullptr) {
    stream_meeting& meeting = *plan->meeting;
    const std::uint64_t all_there = meeting.others * ++meeting.begun_runs;
    const bool goes_on = co_await unless_stopped(
        // Acquire: what the other streams did before is visible to the operations.
        comm,
        [&] { return meeting.arrivals.load(std::memory_order_acquire) >= all_there; });
    if (!goes_on) {
      co_return;
    }
  }
  if (!co_await unless_stopped(comm, [&] { return scope.try_enter(plan->ticket); })) {
    co_return;
  }
  task_set tasks = make_tasks(*plan);
  co_await until([&tasks] { return tasks.advance(); });
  if (plan->meeting != nullptr) {
    // Release: what the operations did is visible to the other streams.
    plan->meeting->finished_runs.fetch_add(1, std::memory_order_release);
  }
}

// On every other stream of the launch: come to the meeting, and wait for its end.
task meet(std::shared_ptr<launch_plan> plan, std::shared_ptr<std::uint64_t> runs) {
  const std::uint64_t run = ++*runs;
  stream_meeting& meeting = *plan->meeting;
  // Release, and acquire below: as in run_launch.
  meeting.arrivals.fetch_add(1, std::memory_order_release);
  static_cast<void>(co_await unless_stopped(*plan->comm, [&meeting, run] {
    return meeting.finished_runs.load(std::memory_order_acquire) >= run;
  }));
}

std::vector<stream_ptr> distinct_streams(const std::vector<issued_operation>& operations) {
  std::vector<stream_ptr> streams;
  for (const issued_operation& each : operations) {
    if (std::ranges::find(streams, each.target) == streams.end()) {
      streams.push_back(each.target);
    }
  }
  return streams;
}

bool has_result(const communicator& comm, const operation& op) noexcept {
  if (op.kind == operation_kind::reduce || op.kind == operation_kind::gather) {
    return op.count > 0 && op.peer == comm.rank();
  }
  return op.count > 0 && op.kind != operation_kind::send;
}

// What the fault script wants of an operation.
void apply_faults(const communicator& comm, operation& op, int& async_error) {
  if (!may_have_faults()) {
    return;
  }
  const operation_fault fault = begin_operation(comm.rank(), has_result(comm, op));
  op.is_corrupt = fault.is_corrupt;
  if (fault.async_error != results::success) {
    async_error = fault.async_error;
  }
}

// Turns a bit of the first element's most significant byte, so that no tolerance hides it.
task corrupt(communicator& comm, const operation& op) {
  operation sound = op;
  sound.is_corrupt = false;
  task work = make_task(comm, sound);
  co_await until([&work] { return work.advance(); });
  if (!comm.is_stopping()) {
    op.out[op.element() - 1] ^= std::byte{0x40};
  }
}

int reserve_channels(communicator& comm, const std::vector<issued_operation>& operations) {
  for (const issued_operation& each : operations) {
    if (each.op.kind == operation_kind::send) {
      if (const int code = comm.reserve_channel(each.op.peer); code != results::success) {
        return code;
      }
    }
  }
  return results::success;
}

}  // namespace

task make_task(communicator& comm, const operation& op) {
  if (op.is_corrupt) {
    return corrupt(comm, op);
  }
  switch (op.kind) {
    case operation_kind::all_reduce:     return all_reduce(comm, op);
    case operation_kind::reduce:         return reduce(comm, op);
    case operation_kind::broadcast:      return broadcast(comm, op);
    case operation_kind::all_gather:     return all_gather(comm, op);
    case operation_kind::reduce_scatter: return reduce_scatter(comm, op);
    case operation_kind::all_to_all:     return all_to_all(comm, op);
    case operation_kind::gather:         return gather(comm, op);
    case operation_kind::scatter:        return scatter(comm, op);
    case operation_kind::send:           return send(comm, op);
    case operation_kind::recv:           return recv(comm, op);
  }
  return {};
}

int check_group(const communicator& comm, const std::vector<issued_operation>& operations) {
  const auto to_oneself = [&](operation_kind kind) {
    return std::ranges::count_if(operations, [&](const issued_operation& each) {
      return each.op.kind == kind && each.op.peer == comm.rank();
    });
  };
  if (to_oneself(operation_kind::send) != to_oneself(operation_kind::recv)) {
    return refuse(results::invalid_usage,
                  "rank {}: a send to itself needs a receive from itself in the same group",
                  comm.rank());
  }
  return results::success;
}

int launch(const communicator_ptr& comm, const std::vector<issued_operation>& operations) {
  if (const int code = reserve_channels(*comm, operations); code != results::success) {
    return code;
  }
  const std::vector<stream_ptr> streams = distinct_streams(operations);
  auto plan = std::make_shared<launch_plan>();
  plan->comm = comm;
  plan->is_captured = is_capturing(streams.front());
  if (plan->is_captured) {
    ++comm->captured;
  } else {
    plan->ticket = comm->gate.issue();
  }
  int async_error = results::success;
  for (const issued_operation& each : operations) {
    plan->operations.push_back(each.op);
    apply_faults(*comm, plan->operations.back(), async_error);
  }
  if (streams.size() > 1) {
    plan->meeting = std::make_shared<stream_meeting>();
    plan->meeting->others = streams.size() - 1;
  }
  bool is_enqueued = enqueue(streams.front(), [plan] { return run_launch(plan); });
  for (std::size_t i = 1; i < streams.size(); ++i) {
    auto runs = std::make_shared<std::uint64_t>(0);
    is_enqueued &= enqueue(streams[i], [plan, runs] { return meet(plan, runs); });
  }
  if (!is_enqueued) {
    return refuse(results::unhandled_cuda_error, "the capture of the stream was invalidated");
  }
  if (async_error != results::success) {
    set_async_error(*comm, async_error);
  }
  return results::success;
}

}  // namespace spark_comm::host::nccl
