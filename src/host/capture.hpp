// SPDX-License-Identifier: AGPL-3.0-only
// Stream capture: work that is written down as a graph in place of being queued, forks and joins
// over several streams included, and the rules about what breaks a capture.
#pragma once

#include "driver_abi.hpp"
#include "graph.hpp"
#include "stream.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace spark_comm::host {

struct event_record;

/// A capture in progress. All members are guarded by the process's capture lock.
struct capture {
  driver::capture_mode mode = driver::capture_mode::global;
  std::thread::id owner;
  const stream* origin = nullptr;
  bool is_invalidated = false;
  bool is_ended = false;
  std::shared_ptr<graph_plan> plan = std::make_shared<graph_plan>();
  std::vector<std::weak_ptr<stream>> members;  ///< the origin first
};

/// What a stream keeps about the capture that it takes part in. Guarded by the capture lock.
struct capture_membership {
  std::shared_ptr<capture> session;
  std::vector<std::size_t> tail;  ///< nodes that the next one comes after
};

[[nodiscard]] driver::result begin_capture(const stream_ptr& target, driver::capture_mode mode);

/// Ends the capture; `plan` is null unless the answer is success.
[[nodiscard]] driver::result end_capture(const stream_ptr& target,
                                         std::shared_ptr<graph_plan>& plan);

/// Writes work down. stream_capture_invalidated when the capture is broken, illegal_state when the
/// stream is not captured (any more).
[[nodiscard]] driver::result capture_work(const stream_ptr& target, graph_node node);

/// Breaks the capture that `target` takes part in, if any.
void invalidate_capture(const stream_ptr& target) noexcept;

/// For a stream that is destroyed: breaks its capture, and ends it if the stream began it.
void abandon_capture(const stream_ptr& target) noexcept;

/// What asking for the state of an event in a graph is answered with. Breaks the capture if it
/// still runs.
[[nodiscard]] driver::result refuse_captured_event(const event_record& record) noexcept;

/// An event record in a captured stream: a place in the graph. Null when the stream is not
/// captured.
[[nodiscard]] std::shared_ptr<event_record> capture_record(const stream_ptr& target);

/// `target` waits for a place in a graph, and thereby joins its capture.
[[nodiscard]] driver::result capture_join(const stream_ptr& target, const event_record& record);

/// What a captured stream answers to a wait for an event outside of its capture: the capture
/// breaks.
[[nodiscard]] driver::result refuse_outside_event(const stream_ptr& target);

/// To be asked before a call that CUDA holds unsafe while a capture runs. Breaks the captures that
/// the calling thread must not disturb, and then returns stream_capture_unsupported.
[[nodiscard]] driver::result permit_unsafe_call() noexcept;

/// Sets the calling thread's mode and returns the one before.
driver::capture_mode exchange_thread_mode(driver::capture_mode mode) noexcept;

}  // namespace spark_comm::host
