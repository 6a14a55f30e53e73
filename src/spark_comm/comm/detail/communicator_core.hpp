// SPDX-License-Identifier: AGPL-3.0-only
// The state behind a communicator: identity, status, the native communicator and the gate in front
// of it. The communicator object, its groups and its operations are thin around this.
#pragma once

#include <spark_comm/comm/detail/bounded.hpp>
#include <spark_comm/comm/detail/call_gate.hpp>
#include <spark_comm/comm/detail/capture_marks.hpp>
#include <spark_comm/comm/detail/completion_events.hpp>
#include <spark_comm/comm/detail/followed_operation.hpp>
#include <spark_comm/comm/detail/lineage.hpp>
#include <spark_comm/comm/detail/native_communicator.hpp>
#include <spark_comm/comm/detail/path_support.hpp>
#include <spark_comm/comm/detail/registry.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/rendezvous/world.hpp>
#include <spark_comm/supervise/communicator_state.hpp>
#include <spark_comm/supervise/supervisor.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

namespace spark_comm::detail {

/// One generation. Shared between the communicator object and the threads that join and end it.
class communicator_core : public std::enable_shared_from_this<communicator_core> {
 public:
  /// Checks the arguments and opens the device; nothing is started.
  communicator_core(runtime loaded,
                    world place,
                    join_options options,
                    std::shared_ptr<registry> registered,
                    lineage before = {});
  communicator_core(const communicator_core&) = delete;
  communicator_core& operator=(const communicator_core&) = delete;
  communicator_core(communicator_core&&) = delete;
  communicator_core& operator=(communicator_core&&) = delete;
  ~communicator_core();

  // Identity.
  [[nodiscard]] const runtime& loaded() const noexcept { return loaded_; }

  [[nodiscard]] const world& place() const noexcept { return place_; }

  [[nodiscard]] const join_options& options() const noexcept { return options_; }

  [[nodiscard]] const cuda::device& device() const noexcept { return device_; }

  [[nodiscard]] bool is_alone() const noexcept { return place_.world_size == 1; }

  [[nodiscard]] bool can_reduce_fp8() const noexcept { return can_reduce_fp8_; }

  /// Name, rank, world and device, for errors.
  [[nodiscard]] error_context context() const;

  // Status.
  [[nodiscard]] communicator_status& status() noexcept { return status_; }

  [[nodiscard]] const communicator_status& status() const noexcept { return status_; }

  [[nodiscard]] std::uint64_t sequence() const noexcept {
    return sequence_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t generation() const noexcept {
    return generation_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] const std::shared_ptr<registry>& registered() const noexcept { return registered_; }

  /// Whether all work on `s` is over.
  /// Throws: device_failed (broken); invalid_usage while it is being captured.
  [[nodiscard]] progress poll(cuda::stream_ref s);

  /// Keeps the first error; later ones are dropped.
  void fail(const error& cause) noexcept;

  /// Throws unless operations are allowed now.
  void require_operable() const;

  /// As `require_operable`; also asks the kernels, whose failures nobody else may have seen yet.
  void require_healthy();

  // Life. Each blocks, on whatever thread calls it.
  /// Meets the others and connects. Throws after having cleaned up.
  void join(const deadline& until);

  /// Orderly end. Throws after having aborted; invalid_usage, and nothing done, when another thread
  /// issues or closes.
  void close(duration limit);

  void abort() noexcept;

  // Succession; see succession.cpp.
  /// Ends this generation without waiting for the peers, and tells them; what the next one needs.
  void retire() noexcept;
  [[nodiscard]] lineage bequeath(rendezvous::membership who);
  /// Gives up the port at which the others would look for this rank.
  void leave_for_good() noexcept;

  // Registering; see registering.cpp and `registry`.
  /// Throws as `communicator::register_window`.
  [[nodiscard]] native_registration attach(const memory_range& range, const deadline& until);

  /// As `attach`, in a join or inside the gate.
  [[nodiscard]] native_registration attach_joining(const memory_range& range,
                                                   const deadline& until);

  /// Throws: invalid_usage while operations are outstanding or another thread is inside.
  void detach(registration_kind kind, const native_registration& native);

  /// The same for destructors: waits a moment, and reports.
  void detach_quietly(registration_kind kind, const native_registration& native) noexcept;

  /// The native call, if it is one of this generation. Who: inside the gate.
  void release_native(registration_kind kind, const native_registration& native) noexcept;

  // Launching; see launch.cpp.
  /// Lets the calling thread issue operations. Throws invalid_usage or aborted.
  void enter();

  void leave() noexcept { gate_.leave(); }

  /// Throws invalid_argument when the operation's stream belongs to another device.
  void require_own_stream(const operation& op);

  /// Numbers the operation and writes it down.
  followed_operation note(operation& op);

  /// As `note`; then, in the strict check, waits for the others to agree.
  /// Before the launch; the caller has entered. Throws: mismatch, timed_out (broken).
  [[nodiscard]] followed_operation prepare(operation& op);

  /// The native calls of `op`.
  [[nodiscard]] launch_result launch(const operation& op) const noexcept;

  /// After the launch: waits until NCCL has launched what it was given, for libraries that were
  /// told by their environment to make every communicator non-blocking; then has the operation
  /// watched.
  void follow(const operation& op,
              const followed_operation& followed,
              const launch_result& launched);

  /// Breaks the communicator, because an operation failed that has taken its place in the order,
  /// and gives the error to throw.
  [[nodiscard]] error noted_failure(const error& failure, const operation& op);

  /// The same for a native call's answer.
  [[nodiscard]] error launch_failure(const launch_result& result, const operation& op);

  /// Breaks the communicator and tells the peers.
  void fail_and_announce(const error& cause) noexcept;

  /// The ways that operations can go.
  [[nodiscard]] path_support& paths() const noexcept { return *paths_; }

  /// A stream of the communicator's own, made at the first use.
  [[nodiscard]] const cuda::stream& own_stream();

  /// One element of device memory that a barrier reduces, made at the first use.
  [[nodiscard]] void* barrier_element();

 private:
  [[nodiscard]] rendezvous::hello introduce() const;
  [[nodiscard]] nccl::abi::unique_id share_id(const deadline& until);
  [[nodiscard]] watchdog_hooks make_hooks();
  void prepare_watchdog_thread() const;
  void meet(const deadline& until);
  void connect(const deadline& until);
  void check_range(const memory_range& range) const;
  [[nodiscard]] void* register_natively(const memory_range& range) const;
  [[nodiscard]] void* make_window(const memory_range& range, const deadline& until);
  void give_up_join(const error& cause) noexcept;
  void end_join() noexcept;
  [[nodiscard]] bool wait_for_join(const deadline& until);
  void wait_for_work(const deadline& until);
  void tear_down(const deadline& until);
  void close_ready(duration limit);
  void abort_within(duration limit) noexcept;
  void abort_native(duration limit) noexcept;

  /// Has the native communicator aborted on a thread of its own, without waiting: its kernels would
  /// hold up everything that waits for the device, such as a cuMemFree in a destructor, long before
  /// the program comes to call `abort`.
  void start_ending() noexcept;

  /// The native abort, begun now or before; null when there is nothing to abort.
  [[nodiscard]] std::shared_ptr<bounded_call> begin_ending();
  void wait_for_farewells(const deadline& until) const;
  void release_paths() noexcept;
  void end_supervision(flight_end how) noexcept;
  [[nodiscard]] bool is_captured(cuda::stream_ref stream) const;
  void settle_launch(const operation& op);
  void require_agreement(const operation& op);
  void follow_captured(const operation& op, const followed_operation& followed);
  void say_when_out_of_marks(const followed_operation& followed);

  runtime loaded_;
  world place_;
  join_options options_;
  cuda::device device_;
  bool can_reduce_fp8_ = false;

  communicator_status status_;
  std::atomic<std::uint64_t> sequence_{0};
  std::atomic<std::uint64_t> generation_;  // settled by the meeting

  std::shared_ptr<registry> registered_;
  lineage before_;
  std::shared_ptr<path_support> paths_;
  call_gate gate_;
  std::atomic<bool> is_leaving_{false};  // it has said farewell
  completion_events events_;
  std::optional<capture_marks> capture_marks_;   // none when nobody watches
  bool is_out_of_marks_ = false;                 // and it has been said
  cuda::abi::stream last_own_stream_ = nullptr;  // the last one that was seen to be our device's
  std::optional<cuda::stream> own_stream_;
  std::optional<cuda::device_buffer> barrier_memory_;

  std::stop_source give_up_;  // ends a meeting that is under way
  std::atomic<bool> is_closing_{false};
  std::mutex end_mutex_;   // one thread at a time ends the supervision
  std::mutex life_mutex_;  // guards the next two: made by the join, taken by whoever ends it
  std::condition_variable join_over_;
  bool is_joining_ = true;
  std::shared_ptr<native_communicator> native_;
  std::shared_ptr<bounded_call> ending_;
  nccl::abi::comm working_ = nullptr;  // native_->working(), for the launches; set before `ready`

  // Made by the join and kept to the end: a thread that comes late out of a native call may still
  // use them after an abort. Stopped before that.
  std::unique_ptr<rendezvous::session> session_;
  std::unique_ptr<supervisor> supervisor_;
};

}  // namespace spark_comm::detail
