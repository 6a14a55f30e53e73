// SPDX-License-Identifier: AGPL-3.0-only
// The communicator: this process's place in a group of ranks, its life and its states.
// The operations on it are free functions, one header each, in collectives/.
#pragma once

#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/rank_id.hpp>
#include <spark_comm/comm/registration.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/device_span.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/rendezvous/world.hpp>
#include <spark_comm/supervise/communicator_state.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace spark_comm {

namespace detail {
class bounded_call;
class communicator_core;
class generations;
}  // namespace detail

/// A group of ranks that do the same operations in the same order.
///
/// Threads: one thread at a time issues operations; a second one is told so (`invalid_usage`).
/// `abort`, `state` and `last_error` may be called from any thread at any time.
/// The destructor of one that was not closed aborts it, bounded by `abort_deadline`, and reports.
/// What it gives references to (name, device, runtime) lives as long as this object.
class SPARK_COMM_API communicator {
 public:
  /// Joins the world and returns when every rank is there.
  ///
  /// Who: every rank, with the same address and world size.
  /// Throws: invalid_argument (before any socket or native call), mismatch, timed_out naming the
  /// ranks that are missing, peer_lost, not_supported, device_failed, system_failed. After a throw
  /// nothing is left: no communicator, socket or thread that waits.
  /// Cost: two NCCL inits: a non-blocking one that can be bounded, and a blocking child split from
  /// it, because blocking ones launch 25 to 45 us faster.
  [[nodiscard]] static communicator join(const runtime& loaded,
                                         const world& place,
                                         const join_options& options = {});

  /// The same without waiting: returns at once, in the state `joining`; ask `poll_join`.
  [[nodiscard]] static communicator start_join(const runtime& loaded,
                                               const world& place,
                                               const join_options& options = {});

  /// Whether the join is over. Throws what `join` would have thrown; the state is `broken` then.
  [[nodiscard]] progress poll_join();

  communicator(communicator&&) noexcept;
  communicator& operator=(communicator&&) noexcept;
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;
  ~communicator();

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int world_size() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] const cuda::device& device() const noexcept;
  [[nodiscard]] const runtime& loaded_runtime() const noexcept;
  [[nodiscard]] communicator_state state() const noexcept;

  /// The first error that broke it; empty while it is healthy.
  [[nodiscard]] std::optional<error> last_error() const;

  /// Sequence number of the last operation submitted; 0 before the first.
  [[nodiscard]] std::uint64_t sequence() const noexcept;

  /// Which connection of these ranks this is, counting from 1: the same on all of them.
  [[nodiscard]] std::uint64_t generation() const noexcept;

  /// Waits until everything enqueued on `s` is over, and fails as soon as this communicator does.
  ///
  /// Throws: the error that broke the communicator, meanwhile or before; aborted;
  /// invalid_usage while `s` is being captured. A time-out is a value and breaks nothing.
  [[nodiscard]] wait_result wait(cuda::stream_ref s, duration limit);

  /// Connects anew, in the next generation: this object, its buffers, streams and registrations
  /// stay, graphs that hold its operations do not. Sequence numbers start again.
  ///
  /// From `broken` or `aborted`, and from `ready`, whose peers are told. Work in flight is given
  /// up. A new process comes in a lost rank's place by `join`, with `join_options::way_in` saying
  /// so, and registers the windows that the others have, in their order, before anything else. Who:
  /// every rank that is left, with the same `who`. The lowest of them listens where the ranks first
  /// met, if that address is its machine's. Throws: as `join`; invalid_usage (closed, joining). The
  /// state is `broken` then, with that error kept, and it may be tried again. Cost: as `join`, and
  /// one native call a registration.
  void reconnect(const reconnect_options& options = {});

  /// The same, with a new process in each lost rank's place.
  void reconnect(duration limit) { reconnect({.deadline = limit}); }

  /// Registers memory with NCCL, now and in every later generation.
  ///
  /// Who: every rank that passes a registered buffer to a collective does, or none. Not while a
  /// stream is captured.
  /// Throws: invalid_argument (null, empty); the first error of a broken communicator;
  /// invalid_usage; what NCCL answers, and nothing is changed.
  [[nodiscard]] registration register_buffer(void* address, std::size_t bytes);
  [[nodiscard]] registration register_buffer(const cuda::device_buffer& memory);

  template <typename T>
  [[nodiscard]] registration register_buffer(device_span<T> memory) {
    return register_buffer(memory.address, memory.size_bytes());
  }

  /// Makes memory a window, together with all other ranks. `memory_kind::symmetric` is what it is
  /// made of.
  ///
  /// Who: every rank, in the same order, with the same size. Not while a stream is captured.
  /// Throws: as `register_buffer`; invalid_argument for a start that is not a multiple of 4096 from
  /// that of its allocation; not_supported before NCCL 2.27.3; timed_out after the communicator's
  /// `operation_deadline`. After a failure that is not `invalid_argument` or `not_supported` the
  /// communicator is broken: other ranks may wait inside.
  [[nodiscard]] window register_window(void* address, std::size_t bytes);
  [[nodiscard]] window register_window(const cuda::device_buffer& memory);

  template <typename T>
  [[nodiscard]] window register_window(device_span<T> memory) {
    return register_window(memory.address, memory.size_bytes());
  }

  /// Ends it in order: waits for its work, tells the peers, destroys the native communicator.
  ///
  /// Who: every rank. Afterwards the state is `closed`; closing again does nothing.
  /// Throws: timed_out when work or peers take longer; the state is `aborted` then.
  void close(duration limit);

  /// Ends it at once. Work in flight ends without a result; waiting threads get `aborted`.
  ///
  /// Returns within `abort_deadline`; a native abort that has not come back by then is left behind
  /// on its own thread and reported. Any thread, any number of times, in any state.
  void abort() noexcept;

  /// For the operations: the state behind this object.
  [[nodiscard]] detail::communicator_core& core() const;

 private:
  explicit communicator(std::unique_ptr<detail::generations> all) noexcept;

  [[nodiscard]] detail::registry_entry add(const detail::memory_range& range,
                                           const cuda::device_buffer* owner);
  void begin_join(duration limit);
  void wait_for_join(duration limit, const char* operation);
  void end() noexcept;
  void finish_join() noexcept;

  std::unique_ptr<detail::generations> all_;
  std::unique_ptr<detail::bounded_call> join_;  // while it is joining
};

}  // namespace spark_comm
