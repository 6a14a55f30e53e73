// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/group_context.hpp>
#include <spark_comm/comm/detail/issue.hpp>
#include <spark_comm/comm/group.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace spark_comm {
namespace detail {

void group_context::collect(communicator_core& core, const operation& op) {
  try {
    core.require_operable();
    core.require_own_stream(op);
  } catch (const error& cause) {
    refuse(cause);
    throw;
  }
  auto part = std::ranges::find(batches_, &core, [](const batch& each) { return each.core.get(); });
  if (part == batches_.end()) {
    batches_.push_back({.core = core.shared_from_this(), .operations = {}});
    part = batches_.end() - 1;
  }
  part->operations.push_back(op);
}

void group_context::commit() {
  if (--depth_ > 0) {
    return;
  }
  const std::vector<batch> collected = std::exchange(batches_, {});
  const std::optional<error> refused = std::exchange(refused_, std::nullopt);
  const bool is_dropped = std::exchange(is_dropped_, false);
  if (refused) {
    throw error{*refused};
  }
  if (is_dropped) {
    throw error{errc::invalid_usage,
                "an inner group was left without a commit, so nothing of this group is launched"};
  }
  issue_group(collected);
}

void group_context::drop() noexcept {
  is_dropped_ = --depth_ > 0;
  batches_.clear();
  if (depth_ == 0) {
    refused_.reset();
  }
}

void group_context::refuse(const error& cause) {
  if (!refused_) {
    refused_ = cause;
  }
}

group_context& this_thread_group() noexcept {
  static thread_local group_context group;
  return group;
}

group_context* open_group() noexcept {
  group_context& group = this_thread_group();
  return group.is_open() ? &group : nullptr;
}

void throw_refusal(const error& cause) {
  if (group_context* group = open_group(); group != nullptr) {
    group->refuse(cause);
  }
  throw error{cause};
}

}  // namespace detail

group_scope::group_scope(communicator& comm) : comm_(&comm), thread_(std::this_thread::get_id()) {
  comm.core().require_operable();
  detail::this_thread_group().open();
}

group_scope::~group_scope() {
  if (!open_) {
    return;
  }
  if (thread_ != std::this_thread::get_id()) {
    comm_->loaded_runtime().log().report(
        severity::error,
        "a group_scope was destroyed by another thread than the one that made it; "
        "that thread's group stays open");
    return;
  }
  detail::this_thread_group().drop();
}

void group_scope::commit() {
  if (thread_ != std::this_thread::get_id()) {
    throw error{errc::invalid_usage,
                "a group belongs to the thread that opened it",
                comm_->core().context()};
  }
  if (!std::exchange(open_, false)) {
    throw error{
        errc::invalid_usage, "the group has been committed already", comm_->core().context()};
  }
  detail::this_thread_group().commit();
}

}  // namespace spark_comm
