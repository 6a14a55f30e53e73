// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/completion_events.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/api.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/supervise/in_flight.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace spark_comm::detail {
namespace {

// A mark as the watchdog's token: lane, slot and the number of the mark on its stream.
constexpr unsigned slot_bits = 10;
constexpr unsigned round_bits = 48;  // at a mark a microsecond they last nine years

constexpr std::uint64_t bits(unsigned count) noexcept {
  return (std::uint64_t{1} << count) - 1;
}

struct mark_id {
  std::size_t lane;
  std::uint32_t slot;
  std::uint64_t round;
};

constexpr std::uint64_t pack(const mark_id& id) noexcept {
  return std::uint64_t{id.lane} << (slot_bits + round_bits) | std::uint64_t{id.slot} << round_bits |
         (id.round & bits(round_bits));
}

constexpr mark_id unpack(std::uint64_t token) noexcept {
  return {.lane = token >> (slot_bits + round_bits),
          .slot = static_cast<std::uint32_t>(token >> round_bits & bits(slot_bits)),
          .round = token & bits(round_bits)};
}

}  // namespace

bool completion_events::lane::is_idle() const noexcept {
  // Acquire: what the one who found it out has seen is over for us, too.
  return reached.load(std::memory_order_acquire) >= marked.load(std::memory_order_relaxed);
}

void completion_events::lane::raise(std::uint64_t round) noexcept {
  std::uint64_t known = reached.load(std::memory_order_relaxed);
  // Release: our look at the event comes before its next use.
  while (known < round && !reached.compare_exchange_weak(
                              known, round, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

completion_events::completion_events(cuda::device device, std::size_t capacity)
    : device_(std::move(device)), capacity_(std::min(capacity, std::size_t{1} << slot_bits)) {
  slots_.reserve(capacity_);  // the events stay where they are: others query them
}

void completion_events::fill() {
  while (slots_.size() < capacity_) {
    slots_.push_back({.event = device_.create_event()});
    put_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
}

completion_events::lane* completion_events::find(cuda::stream_ref s) noexcept {
  // Acquire: a lane is counted after it has got its stream.
  const std::span lanes{lanes_.data(), lanes_used_.load(std::memory_order_acquire)};
  const auto found = std::ranges::find_if(lanes, [&](const lane& each) {
    return each.stream.load(std::memory_order_relaxed) == s.get();
  });
  return found == lanes.end() ? nullptr : &*found;
}

completion_events::lane* completion_events::find_or_make(cuda::stream_ref s) noexcept {
  if (lane* const known = find(s)) {
    return known;
  }
  const std::size_t used = lanes_used_.load(std::memory_order_relaxed);
  if (used < lanes_.size()) {
    lanes_[used].stream.store(s.get(), std::memory_order_relaxed);
    lanes_used_.store(used + 1, std::memory_order_release);
    return &lanes_[used];
  }
  // One that has nothing outstanding serves another stream; its count goes on.
  lane* const idle = std::ranges::find_if(lanes_, &lane::is_idle);
  if (idle == lanes_.end()) {
    return nullptr;
  }
  idle->stream.store(s.get(), std::memory_order_relaxed);
  return idle;
}

void completion_events::reclaim(lane& from) noexcept {
  // Acquire: whoever found out has had its last look at the events.
  const std::uint64_t reached = from.reached.load(std::memory_order_acquire);
  while (from.oldest != none && slots_[from.oldest].round <= reached) {
    put_back(std::exchange(from.oldest, slots_[from.oldest].next));
  }
  if (from.oldest == none) {
    from.newest = none;
  }
}

std::uint32_t completion_events::take() noexcept {
  if (spare_ == none) {
    for (lane& each : std::span{lanes_.data(), lanes_used_.load(std::memory_order_relaxed)}) {
      reclaim(each);
    }
  }
  return spare_ == none ? none : std::exchange(spare_, slots_[spare_].next);
}

void completion_events::put_back(std::uint32_t index) noexcept {
  slots_[index].next = std::exchange(spare_, index);
}

// The event is recorded by the bare call: `event::record` asks the driver twice more, and this is
// the way of every operation.
std::optional<std::uint64_t> completion_events::mark(cuda::stream_ref s) {
  lane* const target = find_or_make(s);
  if (target == nullptr) {
    return std::nullopt;
  }
  reclaim(*target);
  const std::uint32_t index = take();
  if (index == none) {
    return std::nullopt;
  }
  slot& taken = slots_[index];
  const cuda::driver& driver = device_.loaded_driver();
  const cuda::abi::result code = driver.table().cuEventRecord(taken.event.get(), s.get());
  if (code != cuda::abi::results::success) {
    put_back(index);
    driver.check(code, "cuEventRecord");
  }
  taken.round = target->marked.load(std::memory_order_relaxed) + 1;
  taken.next = none;
  (target->newest == none ? target->oldest : slots_[target->newest].next) = index;
  target->newest = index;
  // Release: whoever reads the count sees the mark on the stream.
  target->marked.store(taken.round, std::memory_order_release);
  return pack({.lane = static_cast<std::size_t>(target - lanes_.data()),
               .slot = index,
               .round = taken.round});
}

std::uint64_t completion_events::marks_on(cuda::stream_ref s) noexcept {
  const lane* const known = find(s);
  return known == nullptr ? 0 : known->marked.load(std::memory_order_acquire);
}

void completion_events::note_drained(cuda::stream_ref s, std::uint64_t marks) noexcept {
  // Should the lane serve another stream by now, then all its former marks have been reached.
  if (lane* const known = find(s)) {
    known->raise(marks);
  }
}

progress completion_events::poll_all() {
  const cuda::driver& driver = device_.loaded_driver();
  for (lane& each : std::span{lanes_.data(), lanes_used_.load(std::memory_order_relaxed)}) {
    if (each.is_idle()) {
      continue;
    }
    const slot& last = slots_[each.newest];
    const cuda::abi::result code = driver.table().cuEventQuery(last.event.get());
    if (code == cuda::abi::results::not_ready) {
      return progress::pending;
    }
    driver.check(code, "cuEventQuery");
    each.raise(last.round);
  }
  return progress::done;
}

completion_probe completion_events::probe(std::uint64_t mark) noexcept {
  return {.poll = poll, .context = this, .token = mark};
}

// The event may have been used anew since, but only after `reached` has come to this mark: an
// answer of "done" is true for both, and after one of "pending" the next is right.
probe_result completion_events::poll(void* self, std::uint64_t token) noexcept {
  auto& events = *static_cast<completion_events*>(self);
  const mark_id id = unpack(token);
  lane& from = events.lanes_[id.lane];
  if (from.reached.load(std::memory_order_acquire) >= id.round) {
    return {.state = probe_state::done};
  }
  const cuda::api& call = events.device_.loaded_driver().table();
  const cuda::abi::result code = call.cuEventQuery(events.slots_[id.slot].event.get());
  if (code == cuda::abi::results::success) {
    from.raise(id.round);
    return {.state = probe_state::done};
  }
  if (code == cuda::abi::results::not_ready) {
    return {.state = probe_state::pending};
  }
  return {.state = probe_state::failed,
          .code = errc::device_failed,
          .domain = native_domain::cuda,
          .native_number = code};
}

}  // namespace spark_comm::detail
