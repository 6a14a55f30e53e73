// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/issue.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/api.hpp>

#include <algorithm>
#include <cstddef>
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

bool is_launched(nccl::abi::result code) noexcept {
  return code == results::success || code == results::in_progress;
}

// Makes the device current where it is not: asking is cheaper than pushing and popping.
class current_device {
 public:
  [[nodiscard]] explicit current_device(const cuda::device& device) {
    const cuda::driver& driver = device.loaded_driver();
    cuda::abi::context current = nullptr;
    driver.check(driver.table().cuCtxGetCurrent(&current), "cuCtxGetCurrent");
    if (current != device.context()) {
      scope_.emplace(device);
    }
  }

 private:
  std::optional<cuda::device_scope> scope_;
};

// The messages of a world of one: the n-th send and the n-th receive belong together.
void exchange_with_self(const communicator_core& core, std::span<const operation> operations) {
  std::vector<operation> sends;
  std::vector<operation> receives;
  for (const operation& op : operations) {
    (op.record.kind == operation_kind::send ? sends : receives).push_back(op);
  }
  const auto pairs_up = [](const operation& sent, const operation& received) {
    return sent.record.count_elements == received.record.count_elements &&
           sent.record.dtype == received.record.dtype;
  };
  if (!std::ranges::equal(sends, receives, pairs_up)) {
    throw error{errc::invalid_argument,
                "the sends and receives of a group in a world of one do not pair up",
                core.context()};
  }
  for (std::size_t i = 0; i < sends.size(); ++i) {
    const operation_record& record = sends[i].record;
    if (record.count_elements > 0 && sends[i].in != receives[i].out) {
      cuda::copy_async(core.device(),
                       receives[i].out,
                       sends[i].in,
                       record.count_elements * size_of(record.dtype),
                       cuda::stream_ref{receives[i].stream});
    }
  }
}

// What a batch's operations need between their preparation and the end of their launch.
struct prepared_batch {
  communicator_core* core;
  std::vector<operation> operations;
  operation end;  // the group itself, which is what is watched
  followed_operation followed;
};

// Writes down the members, then the group. Only the group is watched: its members are launched
// together, so they end together.
prepared_batch prepare(const batch& part) {
  prepared_batch ready{part.core.get(), part.operations, {}, {}};
  for (operation& op : ready.operations) {
    op.record.set(operation_flag::in_group);
    part.core->note(op);
  }
  ready.end = ready.operations.back();
  ready.end.record = {.count_elements = ready.operations.size(), .kind = operation_kind::group};
  ready.followed = part.core->prepare(ready.end);
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
  if (!is_launched(outcome.result.code)) {
    return outcome;
  }
  for (const prepared_batch& part : batches) {
    for (const operation& op : part.operations) {
      if (is_launched(outcome.result.code)) {
        outcome = {part.core->launch(op), &part, &op};
      }
    }
  }
  // After a refused call the end refuses the whole group and launches nothing.
  const nccl::abi::result end = call.ncclGroupEnd();
  if (is_launched(outcome.result.code)) {
    outcome = {{end, "ncclGroupEnd"}, &first, &first.end};
  }
  return outcome;
}

}  // namespace

void issue(communicator_core& core, operation op) {
  const entered_core inside{core};
  core.require_healthy();
  core.require_own_stream(op);
  const current_device current{core.device()};
  const followed_operation followed = core.prepare(op);
  const launch_result result = core.launch(op);
  if (!is_launched(result.code)) {
    throw core.launch_failure(result, op);
  }
  core.follow(op, followed, result.code);
}

void issue_group(std::vector<batch> batches) {
  for (const batch& part : batches) {
    if (part.core->is_alone()) {
      exchange_with_self(*part.core, part.operations);
    }
  }
  std::erase_if(batches, [](const batch& part) { return part.core->is_alone(); });
  if (batches.empty()) {
    return;  // NCCL leaks a little with every empty group
  }
  const std::deque<entered_core> inside = enter_all(batches);
  for (const batch& part : batches) {
    part.core->require_operable();
  }
  const communicator_core& first = *batches.front().core;
  const current_device current{first.device()};
  std::vector<prepared_batch> ready;
  for (const batch& part : batches) {
    ready.push_back(prepare(part));
  }
  const group_outcome outcome = run_native_group(first.loaded().library().table(), ready);
  if (!is_launched(outcome.result.code)) {
    const error failure = outcome.part->core->launch_failure(outcome.result, *outcome.op);
    for (const batch& part : batches) {
      part.core->fail_and_announce(failure);
    }
    throw failure;
  }
  for (const prepared_batch& part : ready) {
    part.core->follow(part.end, part.followed, outcome.result.code);
  }
}

}  // namespace spark_comm::detail
