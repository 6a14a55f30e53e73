// SPDX-License-Identifier: AGPL-3.0-only
// How a communicator launches operations: the hot path of the library.
#include <spark_comm/comm/detail/call_gate.hpp>
#include <spark_comm/comm/detail/capture_marks.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/supervise/communicator_state.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>

namespace spark_comm::detail {
namespace {

// The widest element that a barrier's all-reduce may use.
constexpr std::size_t barrier_bytes = 256;

// The kernels of the other paths end by themselves, in graphs too.
bool waits_in_nccl(path_kind path) noexcept {
  return path == path_kind::nccl || path == path_kind::exchange ||
         path == path_kind::exchange_fused;
}

}  // namespace

void communicator_core::enter() {
  switch (gate_.enter_as_issuer()) {
    case call_gate::entry::entered: return;
    case call_gate::entry::busy:
      throw error{errc::invalid_usage,
                  "the communicator is in use by another thread: operations of two threads have no "
                  "order that the other ranks could share",
                  context()};
    case call_gate::entry::closed:
      status_.require(communicator_action::operate, context());
      throw error{errc::aborted, "the communicator is being torn down", context()};
  }
}

followed_operation communicator_core::note(operation& op) {
  const time_point now = steady_time().now();
  op.record.sequence = sequence() + 1;
  op.record.generation = static_cast<std::uint32_t>(generation());
  op.record.stream = reinterpret_cast<std::uintptr_t>(op.stream);
  if (is_captured(cuda::stream_ref{op.stream})) {
    op.record.set(operation_flag::captured);
  }
  const std::uint64_t index = supervisor_->note_submission(op.record, now);
  // Only this thread, inside the gate, writes it; others read it for messages.
  sequence_.store(op.record.sequence, std::memory_order_relaxed);
  return {.flight_index = index, .submitted_at = now};
}

followed_operation communicator_core::prepare(operation& op) {
  followed_operation followed = note(op);
  try {
    if (options_.supervise.check == mismatch_check::strict &&
        options_.supervise.enabled == supervision::on) {
      require_agreement(op);
    }
    if (capture_marks_ && op.record.has(operation_flag::captured) &&
        waits_in_nccl(op.record.path)) {
      followed.mark = capture_marks_->begin(cuda::stream_ref{op.stream});
      say_when_out_of_marks(followed);
    }
  } catch (const error& failure) {
    throw noted_failure(failure, op);
  }
  return followed;
}

launch_result communicator_core::launch(const operation& op) const noexcept {
  return op.launch(loaded_.library().table(), working_, op);
}

void communicator_core::follow(const operation& op,
                               const followed_operation& followed,
                               const launch_result& launched) {
  // After an abort, which did not wait for us, the native handle is dead.
  require_operable();
  std::optional<std::uint64_t> mark;
  try {
    if (launched.is_in_progress()) {
      settle_launch(op);
    }
    if (op.record.has(operation_flag::captured)) {
      follow_captured(op, followed);
      return;
    }
    if (options_.supervise.enabled == supervision::off) {
      return;
    }
    mark = events_.mark(cuda::stream_ref{op.stream});
  } catch (const error& failure) {
    throw noted_failure(failure, op);
  }
  if (!mark) {
    return;  // as when the table is full: older ones, which are followed, run out of time first
  }
  const duration limit = op.deadline.value_or(options_.operation_deadline);
  static_cast<void>(supervisor_->follow({.record = op.record,
                                         .flight_index = followed.flight_index,
                                         .submitted_at = followed.submitted_at,
                                         .limits = {.queued = limit, .running = limit},
                                         .probe = events_.probe(*mark)}));
}

void communicator_core::follow_captured(const operation& op, const followed_operation& followed) {
  if (followed.mark) {
    capture_marks_->end(*followed.mark, cuda::stream_ref{op.stream});
    supervisor_->follow_captured({.record = op.record,
                                  .limit = op.deadline.value_or(options_.operation_deadline),
                                  .probe = capture_marks_->probe(*followed.mark)});
  }
}

void communicator_core::say_when_out_of_marks(const followed_operation& followed) {
  if (!followed.mark && !std::exchange(is_out_of_marks_, true)) {
    loaded_.log().report(
        severity::warning,
        fmt::format("'{}': {} operations have been captured, and those that follow are not seen "
                    "when they hang in a graph; join anew to be rid of the old ones",
                    options_.name,
                    capture_marks::most));
  }
}

void communicator_core::require_agreement(const operation& op) {
  const deadline until = deadline::after(op.deadline.value_or(options_.operation_deadline));
  const agreement answer = supervisor_->agree(op.record, until);
  if (answer == agreement::agreed) {
    return;
  }
  require_operable();  // the watchdog may have put it into words already
  error_context around;
  around.deadline = until.span();
  std::string text = answer == agreement::timed_out ? "has not been issued by every rank"
                                                    : "a rank failed, or is gone";
  errc code = answer == agreement::timed_out ? errc::timed_out : errc::peer_lost;
  for (const peer_observation& peer : supervisor_->peers()) {
    const bool is_behind = peer.collectives_submitted < op.record.ordinal;
    if (peer.parted) {
      code = errc::mismatch;
      text = describe(*peer.parted, peer.rank);
      around.peers = {peer.rank};
      break;
    }
    if (answer == agreement::timed_out ? is_behind
                                       : peer.failure || peer.connection != peer_connection::open) {
      around.peers.push_back(peer.rank);
    }
  }
  throw error{code, text, around};
}

error communicator_core::noted_failure(const error& failure, const operation& op) {
  error_context around = context();
  around.operation = name_of(op.record.kind);
  around.sequence = op.record.sequence;
  around.count_elements = op.record.count_elements;
  around.dtype = op.record.dtype;
  error full = failure.with_context(around);
  fail_and_announce(full);
  if (status_.state() == communicator_state::aborted) {
    return error{errc::aborted, "the communicator was aborted meanwhile", around};
  }
  return full;
}

error communicator_core::launch_failure(const launch_result& result, const operation& op) {
  // An invalid argument breaks it, too: what could be checked was checked before, and the other
  // ranks may have launched their half by now.
  return noted_failure(
      result.failure ? *result.failure : loaded_.library().to_error(result.code, result.function),
      op);
}

void communicator_core::settle_launch(const operation& op) {
  native_->settle(working_,
                  deadline::after(op.deadline.value_or(options_.operation_deadline)),
                  [this] { require_operable(); });
}

bool communicator_core::is_captured(cuda::stream_ref stream) const {
  const cuda::driver& driver = loaded_.driver();
  auto status = cuda::abi::capture_status::none;
  driver.check(driver.table().cuStreamIsCapturing(stream.get(), &status), "cuStreamIsCapturing");
  return status != cuda::abi::capture_status::none;
}

void communicator_core::require_own_stream(const operation& op) {
  // The default stream is our own device's, which is current during the launch. The last one was
  // ours when it was asked; should its handle be another device's by now, CUDA refuses the launch.
  if (op.stream == nullptr || op.stream == last_own_stream_) {
    return;
  }
  cuda::abi::context owner = nullptr;
  const cuda::driver& driver = loaded_.driver();
  driver.check(driver.table().cuStreamGetCtx(op.stream, &owner), "cuStreamGetCtx");
  if (owner != device_.context()) {
    error_context around = context();
    around.operation = name_of(op.record.kind);
    throw error{errc::invalid_argument,
                "the stream belongs to another device than the communicator",
                around};
  }
  last_own_stream_ = op.stream;
}

const cuda::stream& communicator_core::own_stream() {
  if (!own_stream_) {
    own_stream_ = device_.create_stream();
  }
  return *own_stream_;
}

void* communicator_core::barrier_element() {
  enter();
  const gate_pass pass{gate_};
  if (!barrier_memory_) {
    barrier_memory_ = cuda::device_buffer::allocate(device_, barrier_bytes);
    cuda::fill_async(device_, barrier_memory_->address(), 0, barrier_bytes, own_stream());
  }
  return barrier_memory_->address();
}

}  // namespace spark_comm::detail
