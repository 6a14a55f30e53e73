// SPDX-License-Identifier: AGPL-3.0-only
// A communicator of the host runtime: one rank's seat in a segment, and what NCCL's rules need to
// know.
#pragma once

#include "async_state.hpp"
#include "bootstrap.hpp"
#include "config.hpp"
#include "launch_gate.hpp"
#include "nccl_abi.hpp"
#include "reduce.hpp"
#include "registration.hpp"
#include "segment.hpp"
#include "segment_layout.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace spark_comm::host::nccl {

/// Work that a helper thread does for communicators; joined once, by whoever comes first.
class background_job {
 public:
  explicit background_job(std::function<void()> work) : thread_(std::move(work)) {}

  background_job(const background_job&) = delete;
  background_job& operator=(const background_job&) = delete;
  background_job(background_job&&) = delete;
  background_job& operator=(background_job&&) = delete;

  ~background_job() { join(); }

  void join() noexcept;

 private:
  std::mutex mutex_;
  std::thread thread_;
};

/// Threads: the members say; calls on one communicator come from one thread at a time, abort and
/// the state from any.
class communicator {
 public:
  communicator(arrival self, settings options, std::shared_ptr<std::atomic<bool>> abort_flag);
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;
  communicator(communicator&&) = delete;
  communicator& operator=(communicator&&) = delete;
  ~communicator();

  [[nodiscard]] int rank() const noexcept { return self_.rank; }

  [[nodiscard]] int world_size() const noexcept { return self_.world_size; }

  [[nodiscard]] int device() const noexcept { return self_.device; }

  [[nodiscard]] const settings& options() const noexcept { return options_; }

  /// Waits for all ranks of the segment at `address`; see `join_segment`.
  [[nodiscard]] int join(const segment_address& address);

  /// The same in a segment that the caller has opened or made; `is_aborted` ends the wait.
  [[nodiscard]] int join(segment shared, std::uint64_t token, const std::atomic<bool>& is_aborted);

  /// Small messages from everybody to everybody, after `join`.
  [[nodiscard]] int exchange(std::span<const std::byte> mine, std::vector<std::byte>& all);

  /// Where a rank tells others, in no common round, about a segment.
  [[nodiscard]] announcement_line& announcement(int rank) const noexcept;

  /// Memory behind the channel to a peer, before the first message.
  [[nodiscard]] int reserve_channel(int peer);

  // --- Life.

  [[nodiscard]] bool is_aborted() const noexcept {
    return abort_flag_->load(std::memory_order_relaxed);
  }

  /// Whether tasks must end: aborted or revoked.
  [[nodiscard]] bool is_stopping() const noexcept {
    return is_aborted() || is_revoked_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] const std::shared_ptr<std::atomic<bool>>& abort_flag() const noexcept {
    return abort_flag_;
  }

  /// Raises the flag that every wait looks at.
  void raise_abort() noexcept { abort_flag_->store(true); }

  /// True for the first caller. Afterwards tasks end and operations are refused.
  [[nodiscard]] bool revoke() noexcept { return !is_revoked_.exchange(true); }

  [[nodiscard]] bool is_revoked() const noexcept { return is_revoked_.load(); }

  /// True for the first caller.
  [[nodiscard]] bool finalize() noexcept { return !is_finalized_.exchange(true); }

  [[nodiscard]] bool is_finalized() const noexcept { return is_finalized_.load(); }

  /// Waits until every launch is over and no graph holds one, or until it is aborted.
  void drain() noexcept;

  /// Waits until no launch runs. Launches that have not begun end later, without touching anybody's
  /// memory.
  void wait_for_running() noexcept;

  /// Waits until no graph holds a launch.
  void wait_for_graphs() noexcept;

  /// Starts a helper's work, or joins the last one.
  void set_background(std::shared_ptr<background_job> job);
  void join_background() noexcept;

  // --- Parts with their own rules.

  async_state state;  ///< What the program polls.
  launch_gate gate;   ///< Order of launches.
  registration_table registrations;
  registration_table windows;
  std::atomic<int> running{0};   ///< Launches between their start and their end.
  std::atomic<int> captured{0};  ///< Launches that graphs hold.

  // --- Shared memory, as the running launch sees it.

  [[nodiscard]] board_lines& board(int rank) const noexcept;
  [[nodiscard]] std::byte* staging(int rank, std::uint64_t step) const noexcept;
  [[nodiscard]] channel_lines& channel(int from, int to) const noexcept;
  [[nodiscard]] std::byte* channel_slot(int from, int to, std::uint64_t step) const noexcept;

  /// Next step of collectives; the same on all ranks. Used by the running launch alone.
  std::uint64_t next_step = 0;

  /// Own operations of ncclRedOpCreatePreMulSum; empty where one was destroyed.
  std::vector<std::optional<reduction>> own_ops;

  /// How often the communicator was shrunk to a set of ranks (one bit a rank).
  std::map<std::uint64_t, std::uint64_t> shrinks_to;

 private:
  [[nodiscard]] std::byte* at(std::size_t offset) const noexcept { return shared_.data() + offset; }

  arrival self_;
  settings options_;
  std::shared_ptr<std::atomic<bool>> abort_flag_;  // shared with children that share resources
  std::atomic<bool> is_revoked_{false};
  std::atomic<bool> is_finalized_{false};
  segment shared_;
  segment_layout layout_;
  std::uint64_t token_ = 0;
  std::unique_ptr<rank_exchange> exchange_;
  std::vector<bool> has_channel_;
  std::mutex background_mutex_;
  std::shared_ptr<background_job> background_;
};

using communicator_ptr = std::shared_ptr<communicator>;

/// The table of handles that programs hold. A handle is the communicator's address; looking it up
/// makes a stale or wrong one an error instead of a crash.
[[nodiscard]] ncclComm* publish(const communicator_ptr& comm);
[[nodiscard]] communicator_ptr find_communicator(const ncclComm* handle) noexcept;

/// Takes the handle out of the table; false when it was not there.
bool retire(const ncclComm* handle) noexcept;

/// Sets the communicator's asynchronous error, as a network failure would.
void set_async_error(communicator& comm, int code) noexcept;

}  // namespace spark_comm::host::nccl
