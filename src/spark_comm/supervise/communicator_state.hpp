// SPDX-License-Identifier: AGPL-3.0-only
// The life of a communicator: its states, what moves it from one to the next, and what each state
// allows. Decides only; the communicator acts.
#pragma once

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/export.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

namespace spark_comm {

/// Where a communicator stands.
enum class communicator_state : std::uint8_t {
  joining,  ///< Meeting the other ranks; no operation yet.
  ready,    ///< Operations may be submitted.
  broken,   ///< Something failed; the first error is kept.
  aborted,  ///< Torn down without the peers' consent; outstanding work was given up.
  closed,   ///< Torn down in order. The end.
};

inline constexpr communicator_state all_communicator_states[] = {
    communicator_state::joining,
    communicator_state::ready,
    communicator_state::broken,
    communicator_state::aborted,
    communicator_state::closed,
};

/// What happened to it.
enum class communicator_event : std::uint8_t {
  joined,     ///< Every rank is there, the native communicator stands.
  failed,     ///< The watchdog, a native call, a peer or the join reported an error.
  aborted,    ///< `abort` was called, or `close` ran out of time.
  closed,     ///< `close` came to its end.
  rejoining,  ///< `reconnect` was called.
};

inline constexpr communicator_event all_communicator_events[] = {
    communicator_event::joined,
    communicator_event::failed,
    communicator_event::aborted,
    communicator_event::closed,
    communicator_event::rejoining,
};

/// What a caller wants of it.
enum class communicator_action : std::uint8_t {
  query,      ///< Ask for the state or the last error.
  operate,    ///< Submit an operation, register memory, wait for work.
  abort,      ///< Give up.
  close,      ///< End in order.
  reconnect,  ///< Meet again under a new generation.
};

inline constexpr communicator_action all_communicator_actions[] = {
    communicator_action::query,
    communicator_action::operate,
    communicator_action::abort,
    communicator_action::close,
    communicator_action::reconnect,
};

/// Answer to "may I?".
enum class permission : std::uint8_t {
  allowed,    ///< Go on.
  no_effect,  ///< Succeeds at once and does nothing: it was done before.
  refused,    ///< Throws: the first error when broken, `aborted`, else `invalid_usage`.
};

[[nodiscard]] SPARK_COMM_API std::string_view name_of(communicator_state state) noexcept;
[[nodiscard]] SPARK_COMM_API std::string_view name_of(communicator_event event) noexcept;
[[nodiscard]] SPARK_COMM_API std::string_view name_of(communicator_action action) noexcept;

/// The state after `event`; the same state when the event changes nothing there (a second failure),
/// none when the event cannot happen there (joined, when it was aborted meanwhile).
[[nodiscard]] SPARK_COMM_API std::optional<communicator_state> next_state(
    communicator_state state, communicator_event event) noexcept;

[[nodiscard]] SPARK_COMM_API permission permission_for(communicator_state state,
                                                       communicator_action action) noexcept;

/// A communicator's state and first error, shared by the threads that use, watch and abort it.
///
/// Threads: any.
class SPARK_COMM_API communicator_status {
 public:
  explicit communicator_status(communicator_state initial = communicator_state::joining) noexcept
      : state_(initial) {}

  /// Cost: one load; the only part of this class on the way of an operation.
  [[nodiscard]] communicator_state state() const noexcept {
    // Acquire: who sees `broken` also sees what was written before it was set.
    return state_.load(std::memory_order_acquire);
  }

  /// Moves to the next state. False when the event changes nothing or cannot happen, so that of two
  /// callers at once exactly one acts. `joined` and `rejoining` forget the first error.
  bool apply(communicator_event event) noexcept;

  /// As `apply(failed)`, and keeps `cause` if it is the first. `cause` must not be null.
  bool fail(std::shared_ptr<const error> cause) noexcept;

  /// The first error since the last join; null if there was none.
  [[nodiscard]] std::shared_ptr<const error> first_error() const noexcept;

  /// True: go on; false: nothing to do.
  /// Throws: what `permission::refused` says, with `context` filled in.
  bool require(communicator_action action, const error_context& context = {}) const;

 private:
  bool move(communicator_event event, std::shared_ptr<const error> cause) noexcept;

  mutable std::mutex mutex_;  // orders transitions; readers of the state need none
  std::atomic<communicator_state> state_;
  std::shared_ptr<const error> first_error_;
};

}  // namespace spark_comm
