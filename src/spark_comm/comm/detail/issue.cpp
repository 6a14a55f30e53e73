// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/issue.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/api.hpp>

#include <deque>
#include <span>

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

struct group_outcome {
  launch_result result;
  const batch* part = nullptr;
};

// The native group is always ended: an open one would swallow all later calls of this thread.
group_outcome run_native_group(const nccl::api& call, std::span<const batch> batches) noexcept {
  group_outcome outcome{{call.ncclGroupStart(), "ncclGroupStart"}, &batches.front()};
  if (outcome.result.code != results::success) {
    return outcome;
  }
  for (const batch& part : batches) {
    const launch_result launched = part.core->launch(part.operations);
    if (launched.code != results::success) {
      outcome = {launched, &part};
      break;
    }
  }
  // After a refused call the end refuses the whole group and launches nothing.
  const nccl::abi::result end = call.ncclGroupEnd();
  if (outcome.result.code == results::success && end != results::in_progress) {
    outcome.result = {end, "ncclGroupEnd"};
  }
  return outcome;
}

}  // namespace

void issue(communicator_core& core, const operation& op) {
  const entered_core inside{core};
  core.require_operable();
  core.require_own_stream(op);
  const cuda::device_scope current{core.device()};
  const launch_result result = core.launch({&op, 1});
  if (result.code != results::success) {
    throw core.launch_failure(result, op);
  }
  core.settle_launch(op);
  core.mark_work(op);
}

void issue_group(std::span<const batch> batches) {
  if (batches.empty()) {
    return;  // NCCL leaks a little with every empty group
  }
  const std::deque<entered_core> inside = enter_all(batches);
  for (const batch& part : batches) {
    part.core->require_operable();
    for (const operation& op : part.operations) {
      part.core->require_own_stream(op);
    }
  }
  const communicator_core& first = *batches.front().core;
  const cuda::device_scope current{first.device()};
  const group_outcome outcome = run_native_group(first.loaded().library().table(), batches);
  if (outcome.result.code != results::success) {
    const error failure =
        outcome.part->core->launch_failure(outcome.result, outcome.part->operations.front());
    for (const batch& part : batches) {
      part.core->fail(failure);
    }
    throw failure;
  }
  for (const batch& part : batches) {
    for (const operation& op : part.operations) {
      part.core->settle_launch(op);
      part.core->mark_work(op);
    }
  }
}

}  // namespace spark_comm::detail
