// SPDX-License-Identifier: AGPL-3.0-only
// The gate in front of a communicator's native calls. NCCL allows one thread at a time inside a
// communicator, and abort is the one that must not wait for the others for ever.
#pragma once

#include <spark_comm/core/time.hpp>

#include <atomic>
#include <cstdint>

namespace spark_comm::detail {

/// One caller at a time; closed for good by abort.
/// Threads: any.
class call_gate {
 public:
  enum class entry : std::uint8_t {
    entered,  ///< The caller is inside and must `leave`.
    busy,     ///< Another thread is inside.
    closed,   ///< Nobody may enter any more.
  };

  /// For a thread that issues operations: waits for a poller, which is inside for about a
  /// microsecond, but not for another issuer.
  [[nodiscard]] entry enter_as_issuer() noexcept;

  /// For the watchdog: never waits.
  [[nodiscard]] entry enter_as_poller() noexcept;

  void leave() noexcept;

  /// Lets nobody in any more.
  void close() noexcept;

  /// Whether the last one inside has left by the deadline.
  [[nodiscard]] bool wait_until_empty(const deadline& until) const noexcept;

 private:
  static constexpr std::uint32_t issuer_inside = 1;
  static constexpr std::uint32_t poller_inside = 2;
  static constexpr std::uint32_t closed_bit = 4;

  std::atomic<std::uint32_t> state_{0};
};

/// Leaves the gate at the end of the scope.
class gate_pass {
 public:
  [[nodiscard]] explicit gate_pass(call_gate& gate) noexcept : gate_(&gate) {}

  gate_pass(const gate_pass&) = delete;
  gate_pass& operator=(const gate_pass&) = delete;
  gate_pass(gate_pass&&) = delete;
  gate_pass& operator=(gate_pass&&) = delete;

  ~gate_pass() { gate_->leave(); }

 private:
  call_gate* gate_;
};

}  // namespace spark_comm::detail
