// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/issue.hpp>
#include <spark_comm/comm/detail/solo.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace spark_comm::detail {
namespace {

namespace results = nccl::abi::results;

// Lets this thread into a communicator, and out again at the end of the scope.
class entered_core {
 public:
  [[nodiscard]] explicit entered_core(communicator_core& core) : core_(&core) { core.enter(); }

  entered_core(const entered_core&) = delete;
  entered_core& operator=(const entered_core&) = delete;
  entered_core(entered_core&&) = delete;
  entered_core& operator=(entered_core&&) = delete;

  ~entered_core() { core_->leave(); }

 private:
  communicator_core* core_;
};

// Lets this thread into all communicators of a group. Two threads that group the same ones in
// different orders do not wait for each other: the later one is told that one is in use.
std::deque<entered_core> enter_all(std::span<const batch> batches) {
  std::deque<entered_core> inside;
  for (const batch& part : batches) {
    inside.emplace_back(*part.core);
  }
  return inside;
}

// What a batch's operations need between their preparation and the end of their launch.
struct prepared_batch {
  communicator_core* core;
  std::vector<operation> operations;
  operation end;  // the group itself, which is what is watched
  followed_operation followed;
};

// The strictest of the members' own limits, since they end together.
std::optional<duration> shortest_deadline(std::span<const operation> members) {
  std::optional<duration> shortest;
  for (const operation& op : members) {
    if (op.deadline && (!shortest || *op.deadline < *shortest)) {
      shortest = op.deadline;
    }
  }
  return shortest;
}

// The record under which a group is watched. One of messages alone is no step that all ranks share:
// its first message to another rank tells whom it waits for.
operation_record watched_as(const operation_record& group, std::span<const operation> members) {
  if (group.ordinal != 0) {
    return group;
  }
  const auto message = std::ranges::find_if(
      members, [&](const operation& op) { return is_point_to_point(op.record.kind); });
  return message == members.end() ? group : message->record;
}

// Writes down the members, then the group. Only the group is watched: its members are launched
// together, so they end together.
prepared_batch prepare(const batch& part) {
  prepared_batch ready{part.core.get(), part.operations, part.operations.back(), {}};
  for (operation& op : ready.operations) {
    op.record.set(operation_flag::in_group);
    part.core->note(op);
  }
  ready.end.record = {.count_elements = ready.operations.size(), .kind = operation_kind::group};
  ready.end.deadline = shortest_deadline(ready.operations);
  ready.followed = part.core->prepare(ready.end);
  ready.end.record = watched_as(ready.end.record, ready.operations);
  return ready;
}

struct group_outcome {
  launch_result result;
  const prepared_batch* part = nullptr;
  const operation* op = nullptr;
};

// The native group is always ended: an open one would swallow all later calls of this thread.
group_outcome run_native_group(const nccl::api& call,
                               std::span<const prepared_batch> batches) noexcept {
  const prepared_batch& first = batches.front();
  group_outcome outcome{{call.ncclGroupStart(), "ncclGroupStart"}, &first, &first.end};
  if (outcome.result.code != results::success) {
    return outcome;
  }
  for (const prepared_batch& part : batches) {
    for (const operation& op : part.operations) {
      if (outcome.result.is_launched()) {
        outcome = {part.core->launch(op), &part, &op};
      }
    }
  }
  // After a refused call the end refuses the whole group and launches nothing.
  const nccl::abi::result end = call.ncclGroupEnd();
  if (outcome.result.is_launched()) {
    outcome = {{end, "ncclGroupEnd"}, &first, &first.end};
  }
  return outcome;
}

void launch_group(const nccl::api& call, std::span<const batch> batches) {
  std::vector<prepared_batch> ready;
  for (const batch& part : batches) {
    ready.push_back(prepare(part));
  }
  const group_outcome outcome = run_native_group(call, ready);
  if (!outcome.result.is_launched()) {
    throw outcome.part->core->launch_failure(outcome.result, *outcome.op);
  }
  for (const prepared_batch& part : ready) {
    part.core->follow(part.end, part.followed, outcome.result);
  }
}

}  // namespace

void issue(communicator_core& core, operation op) {
  const entered_core inside{core};
  core.require_healthy();
  core.require_own_stream(op);
  if (core.is_alone()) {
    run_alone(core, std::span{&op, 1});
    return;
  }
  const cuda::device_scope current{core.device()};
  const followed_operation followed = core.prepare(op);
  const launch_result result = core.launch(op);
  if (!result.is_launched()) {
    throw core.launch_failure(result, op);
  }
  core.follow(op, followed, result);
}

void issue_group(std::span<const batch> all) {
  const std::deque<entered_core> inside = enter_all(all);
  for (const batch& part : all) {
    part.core->require_operable();
    require_paired_self_messages(*part.core, part.operations);
  }
  std::vector<batch> batches;
  for (const batch& part : all) {
    if (part.core->is_alone()) {
      run_alone(*part.core, part.operations);
    } else {
      batches.push_back(part);
    }
  }
  if (batches.empty()) {
    return;  // NCCL leaks a little with every empty group
  }
  const communicator_core& first = *batches.front().core;
  const cuda::device_scope current{first.device()};
  try {
    launch_group(first.loaded().library().table(), batches);
  } catch (const error& failure) {
    // Some of the communicators have counted operations that their peers will not see.
    for (const batch& part : batches) {
      part.core->fail_and_announce(failure);
    }
    throw;
  }
}

}  // namespace spark_comm::detail
