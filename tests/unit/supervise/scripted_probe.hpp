// SPDX-License-Identifier: AGPL-3.0-only
// Operations whose progress a test sets by hand.
#pragma once

#include <spark_comm/supervise/in_flight.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace spark_comm {

/// Threads: any.
class scripted_probe {
 public:
  static constexpr std::size_t most = 4096;

  /// An all-reduce with this sequence number and ordinal, two seconds for each of its clocks.
  [[nodiscard]] in_flight_operation operation(std::uint64_t sequence, std::uint64_t stream = 7) {
    in_flight_operation made;
    made.record.sequence = sequence;
    made.record.ordinal = sequence;
    made.record.stream = stream;
    made.submitted_at = time_point{std::chrono::seconds{1000}};
    made.limits = {.queued = std::chrono::seconds{2}, .running = std::chrono::seconds{2}};
    made.probe = {.poll = poll, .context = this, .token = sequence};
    return made;
  }

  void set(std::uint64_t sequence, probe_state state) {
    fail(sequence, errc::internal, native_domain::none, 0, state);
  }

  void fail(std::uint64_t sequence,
            errc code,
            native_domain domain,
            std::int32_t number,
            probe_state state = probe_state::failed) {
    answers_[sequence % most] = {.state = state, .code = code, .domain = domain, .number = number};
  }

  [[nodiscard]] int asked() const { return asked_; }

 private:
  struct answer {
    probe_state state = probe_state::pending;
    errc code = errc::internal;
    native_domain domain = native_domain::none;
    std::int32_t number = 0;
  };

  static probe_result poll(void* context, std::uint64_t token) noexcept {
    auto* const self = static_cast<scripted_probe*>(context);
    ++self->asked_;
    const answer given = self->answers_[token % most];
    return {.state = given.state,
            .code = given.code,
            .domain = given.domain,
            .native_number = given.number};
  }

  std::array<std::atomic<answer>, most> answers_{};
  std::atomic<int> asked_{0};
};

}  // namespace spark_comm
