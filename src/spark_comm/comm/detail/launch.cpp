// SPDX-License-Identifier: AGPL-3.0-only
// How a communicator launches operations: the hot path of the library.
#include <spark_comm/comm/detail/call_gate.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/operation.hpp>
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
#include <span>
#include <string>

namespace spark_comm::detail {
namespace {

namespace results = nccl::abi::results;

// The widest element that a barrier's all-reduce may use.
constexpr std::size_t barrier_bytes = 256;

}  // namespace

void communicator_core::enter() {
  switch (gate_.enter_as_issuer()) {
    case call_gate::entry::entered:
      return;
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

launch_result communicator_core::launch(std::span<const operation> operations) noexcept {
  for (const operation& op : operations) {
    const launch_result result = op.launch(loaded_.library().table(), working_, op);
    if (result.code != results::success && result.code != results::in_progress) {
      return result;
    }
    // Only this thread, inside the gate, writes it; others read it for messages.
    sequence_.store(sequence_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  return {};
}

error communicator_core::launch_failure(const launch_result& result, const operation& op) {
  error_context around = context();
  around.operation = name_of(op.record.kind);
  around.sequence = sequence() + 1;
  around.count_elements = op.record.count_elements;
  around.dtype = op.record.dtype;
  const error failure =
      loaded_.library().to_error(result.code, result.function).with_context(around);
  if (failure.kind() != errc::invalid_argument) {
    fail(failure);
  }
  return failure;
}

void communicator_core::settle_launch(const operation& op) {
  nccl::abi::result state = results::success;
  if (loaded_.library().table().ncclCommGetAsyncError(working_, &state) == results::success &&
      state == results::success) {
    return;
  }
  const deadline until = deadline::after(op.deadline.value_or(options_.operation_deadline));
  try {
    native_->settle(working_, until, [this] { require_operable(); });
  } catch (const error& failure) {
    const error full = failure.with_context(context());
    fail(full);
    throw full;
  }
}

void communicator_core::mark_work(const operation& op) {
  work_.mark(cuda::stream_ref{op.stream});
}

void communicator_core::require_own_stream(const operation& op) const {
  if (op.stream == nullptr) {
    return;  // the default stream of our own device, which is current during the launch
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
}

const cuda::stream& communicator_core::own_stream() {
  if (!own_stream_) {
    own_stream_ = device_.create_stream();
  }
  return *own_stream_;
}

void* communicator_core::barrier_element() {
  if (!barrier_memory_) {
    barrier_memory_ = cuda::device_buffer::allocate(device_, barrier_bytes);
    cuda::fill_async(device_, barrier_memory_->address(), 0, barrier_bytes, own_stream());
  }
  return barrier_memory_->address();
}

}  // namespace spark_comm::detail
