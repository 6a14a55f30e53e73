// SPDX-License-Identifier: AGPL-3.0-only
// The rules are those of CUDA's programming guide; results as the driver gave them on a GPU.
#include "capture.hpp"

#include "driver_abi.hpp"
#include "event.hpp"
#include "graph.hpp"
#include "process.hpp"
#include "stream.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace spark_comm::host {

namespace {

using driver::capture_mode;
using driver::capture_status;

capture_mode& thread_mode() noexcept {
  thread_local capture_mode mode = capture_mode::global;
  return mode;
}

// All functions here are called under the capture lock.

void set_status(stream& member, capture_status status) noexcept {
  // Release: pairs with the lock-free look in is_capturing.
  member.capture_state().store(status, std::memory_order_release);
}

void invalidate(capture& session) noexcept {
  if (session.is_ended) {
    return;
  }
  session.is_invalidated = true;
  for (const std::weak_ptr<stream>& each : session.members) {
    if (const stream_ptr member = each.lock()) {
      set_status(*member, capture_status::invalidated);
    }
  }
}

void enter(const stream_ptr& target, const std::shared_ptr<capture>& session) {
  session->members.emplace_back(target);
  target->membership() = {.session = session, .tail = {}};
  set_status(*target,
             session->is_invalidated ? capture_status::invalidated : capture_status::active);
}

void dissolve(const std::shared_ptr<capture>& session) noexcept {
  session->is_ended = true;
  for (const std::weak_ptr<stream>& each : session->members) {
    if (const stream_ptr member = each.lock(); member && member->membership().session == session) {
      member->membership() = {};
      set_status(*member, capture_status::none);
    }
  }
  capture_table& table = process().captures;
  std::erase(table.active, session);
  if (session->mode != capture_mode::relaxed) {
    table.strict.fetch_sub(1, std::memory_order_release);
  }
}

// Whether everything that was captured in other streams comes before something in the origin.
bool is_joined(const capture& session) {
  std::vector<bool> is_before_end(session.plan->nodes.size(), false);
  std::vector<std::size_t> open;
  const stream_ptr origin = session.members.front().lock();
  if (origin != nullptr) {
    open = origin->membership().tail;
  }
  while (!open.empty()) {
    const std::size_t index = open.back();
    open.pop_back();
    if (!is_before_end[index]) {
      is_before_end[index] = true;
      const std::vector<std::size_t>& after = session.plan->nodes[index].after;
      open.insert(open.end(), after.begin(), after.end());
    }
  }
  return std::find(is_before_end.begin(), is_before_end.end(), false) == is_before_end.end();
}

void merge(std::vector<std::size_t>& tail, const std::vector<std::size_t>& more) {
  for (const std::size_t node : more) {
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) {
      tail.push_back(node);
    }
  }
}

// Whether the calling thread, in its present mode, must not make an unsafe call because of
// `session`.
bool forbids_unsafe_calls(const capture& session) noexcept {
  if (session.mode == capture_mode::relaxed) {
    return false;
  }
  const bool is_own = session.owner == std::this_thread::get_id();
  return is_own || (thread_mode() == capture_mode::global && session.mode == capture_mode::global);
}

}  // namespace

driver::result begin_capture(const stream_ptr& target, capture_mode mode) {
  if (target->is_default()) {
    return driver::stream_capture_unsupported;
  }
  capture_table& table = process().captures;
  const std::lock_guard lock{table.mutex};
  if (target->membership().session != nullptr) {
    return driver::illegal_state;
  }
  auto session = std::make_shared<capture>();
  session->mode = mode;
  session->owner = std::this_thread::get_id();
  session->origin = target.get();
  table.active.push_back(session);
  if (mode != capture_mode::relaxed) {
    table.strict.fetch_add(1, std::memory_order_release);
  }
  enter(target, session);
  return driver::success;
}

driver::result end_capture(const stream_ptr& target, std::shared_ptr<graph_plan>& plan) {
  const std::lock_guard lock{process().captures.mutex};
  const std::shared_ptr<capture> session = target->membership().session;
  if (session == nullptr) {
    return driver::illegal_state;
  }
  if (session->origin != target.get()) {
    invalidate(*session);
    return driver::stream_capture_unmatched;
  }
  driver::result result = driver::success;
  if (session->mode != capture_mode::relaxed && session->owner != std::this_thread::get_id()) {
    result = driver::stream_capture_wrong_thread;
  } else if (session->is_invalidated) {
    result = driver::stream_capture_invalidated;
  } else if (!is_joined(*session)) {
    result = driver::stream_capture_unjoined;
  } else {
    plan = session->plan;
  }
  dissolve(session);
  return result;
}

driver::result capture_work(const stream_ptr& target, graph_node node) {
  const std::lock_guard lock{process().captures.mutex};
  capture_membership& place = target->membership();
  if (place.session == nullptr) {
    return driver::illegal_state;
  }
  if (place.session->is_invalidated) {
    return driver::stream_capture_invalidated;
  }
  std::vector<graph_node>& nodes = place.session->plan->nodes;
  node.after = place.tail;
  for (const std::size_t earlier : node.after) {
    nodes[earlier].then.push_back(nodes.size());
  }
  place.tail = {nodes.size()};
  nodes.push_back(std::move(node));
  return driver::success;
}

void invalidate_capture(const stream_ptr& target) noexcept {
  const std::lock_guard lock{process().captures.mutex};
  if (target->membership().session != nullptr) {
    invalidate(*target->membership().session);
  }
}

void abandon_capture(const stream_ptr& target) noexcept {
  const std::lock_guard lock{process().captures.mutex};
  const std::shared_ptr<capture> session = target->membership().session;
  if (session == nullptr) {
    return;
  }
  invalidate(*session);
  if (session->origin == target.get()) {
    dissolve(session);
  }
}

driver::result refuse_captured_event(const event_record& record) noexcept {
  const std::lock_guard lock{process().captures.mutex};
  if (record.session->is_ended) {
    return driver::invalid_value;
  }
  invalidate(*record.session);
  return driver::captured_event;
}

event_record_ptr capture_record(const stream_ptr& target) {
  const std::lock_guard lock{process().captures.mutex};
  const capture_membership& place = target->membership();
  if (place.session == nullptr || place.session->is_invalidated) {
    return nullptr;
  }
  auto record = std::make_shared<event_record>();
  record->session = place.session;
  record->nodes = place.tail;
  return record;
}

driver::result capture_join(const stream_ptr& target, const event_record& record) {
  const std::lock_guard lock{process().captures.mutex};
  const std::shared_ptr<capture>& session = record.session;
  const std::shared_ptr<capture> own = target->membership().session;
  if (session->is_ended) {
    return driver::invalid_value;
  }
  if (own != nullptr && own != session) {
    invalidate(*own);
    invalidate(*session);
    return driver::stream_capture_merge;
  }
  if (session->is_invalidated) {
    return driver::stream_capture_invalidated;
  }
  if (target->is_default()) {
    invalidate(*session);
    return driver::stream_capture_unsupported;
  }
  if (own == nullptr) {
    enter(target, session);
  }
  merge(target->membership().tail, record.nodes);
  return driver::success;
}

driver::result refuse_outside_event(const stream_ptr& target) {
  const std::lock_guard lock{process().captures.mutex};
  if (target->membership().session == nullptr) {
    return driver::illegal_state;
  }
  if (target->membership().session->is_invalidated) {
    return driver::stream_capture_invalidated;
  }
  invalidate(*target->membership().session);
  return driver::stream_capture_isolation;
}

driver::result permit_unsafe_call() noexcept {
  capture_table& table = process().captures;
  if (thread_mode() == capture_mode::relaxed || table.strict.load(std::memory_order_acquire) == 0) {
    return driver::success;
  }
  const std::lock_guard lock{table.mutex};
  driver::result result = driver::success;
  for (const std::shared_ptr<capture>& session : table.active) {
    if (forbids_unsafe_calls(*session)) {
      invalidate(*session);
      result = driver::stream_capture_unsupported;
    }
  }
  return result;
}

capture_mode exchange_thread_mode(capture_mode mode) noexcept {
  return std::exchange(thread_mode(), mode);
}

void retain_in_capture(const stream_ptr& target, std::shared_ptr<void> object) {
  const std::lock_guard lock{process().captures.mutex};
  if (const std::shared_ptr<capture>& session = target->membership().session) {
    session->plan->retained.push_back(std::move(object));
  }
}

}  // namespace spark_comm::host
