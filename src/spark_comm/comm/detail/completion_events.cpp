// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/completion_events.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/api.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/supervise/in_flight.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace spark_comm::detail {

completion_events::completion_events(cuda::device device, std::size_t capacity)
    : device_(std::move(device)), capacity_(capacity), pairs_(capacity), released_(capacity) {
  spare_.reserve(capacity);
}

void completion_events::fill() {
  while (created_ < capacity_) {
    pairs_[created_].emplace(pair{.start = device_.create_event(), .end = device_.create_event()});
    spare_.push_back(created_++);
  }
}

std::optional<std::uint64_t> completion_events::take() {
  if (!spare_.empty()) {
    const std::uint64_t index = spare_.back();
    spare_.pop_back();
    return index;
  }
  // Acquire: the prober's last look at the pair happened before its return.
  if (reused_ < returned_.load(std::memory_order_acquire)) {
    return released_[reused_++ % capacity_];
  }
  return std::nullopt;
}

// The events are recorded by the bare call: `event::record` asks the driver twice more, and this is
// the way of every operation.
std::optional<std::uint64_t> completion_events::begin(cuda::stream_ref s) {
  const std::optional<std::uint64_t> index = take();
  if (index) {
    const cuda::driver& driver = device_.loaded_driver();
    const cuda::abi::result code = driver.table().cuEventRecord(at(*index).start.get(), s.get());
    if (code != cuda::abi::results::success) {
      put_back(*index);
      driver.check(code, "cuEventRecord");
    }
  }
  return index;
}

void completion_events::end(std::uint64_t index, cuda::stream_ref s) {
  const cuda::driver& driver = device_.loaded_driver();
  driver.check(driver.table().cuEventRecord(at(index).end.get(), s.get()), "cuEventRecord");
}

void completion_events::put_back(std::uint64_t index) noexcept {
  spare_.push_back(index);
}

progress completion_events::poll_all() const {
  const cuda::driver& driver = device_.loaded_driver();
  for (std::size_t index = 0; index < created_; ++index) {
    const cuda::abi::result code = driver.table().cuEventQuery(at(index).end.get());
    if (code == cuda::abi::results::not_ready) {
      return progress::pending;
    }
    driver.check(code, "cuEventQuery");
  }
  return progress::done;
}

completion_probe completion_events::probe(std::uint64_t index) noexcept {
  return {.poll = poll, .release = release, .context = this, .token = index};
}

probe_result completion_events::poll(void* self, std::uint64_t index) noexcept {
  const auto& events = *static_cast<completion_events*>(self);
  const cuda::api& call = events.device_.loaded_driver().table();
  const auto failed = [](cuda::abi::result code) {
    return probe_result{.state = probe_state::failed,
                        .code = errc::device_failed,
                        .domain = native_domain::cuda,
                        .native_number = code};
  };
  const cuda::abi::result end = call.cuEventQuery(events.at(index).end.get());
  if (end == cuda::abi::results::success) {
    return {.state = probe_state::done};
  }
  if (end != cuda::abi::results::not_ready) {
    return failed(end);
  }
  const cuda::abi::result start = call.cuEventQuery(events.at(index).start.get());
  if (start == cuda::abi::results::success) {
    return {.state = probe_state::running};
  }
  return start == cuda::abi::results::not_ready ? probe_result{.state = probe_state::queued}
                                                : failed(start);
}

void completion_events::release(void* self, std::uint64_t index) noexcept {
  auto& events = *static_cast<completion_events*>(self);
  const std::uint64_t place = events.returned_.load(std::memory_order_relaxed);
  events.released_[place % events.capacity_] = index;
  // Release: the issuing thread sees the index, and our last look at the pair, before it reuses it.
  events.returned_.store(place + 1, std::memory_order_release);
}

}  // namespace spark_comm::detail
