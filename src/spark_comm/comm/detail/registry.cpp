// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/registry.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/supervise/communicator_state.hpp>

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spark_comm::detail {

std::string_view name_of(registration_kind kind) noexcept {
  switch (kind) {
    case registration_kind::buffer: return "buffer";
    case registration_kind::window: return "window";
  }
  return "unknown";
}

registry::number registry::add(communicator_core& core,
                               const memory_range& range,
                               const cuda::device_buffer* owner,
                               const deadline& until) {
  entry made{.id = 0, .range = range, .native = core.attach(range, until), .watch = nullptr};
  {
    const std::scoped_lock lock{mutex_};
    core_ = core.weak_from_this();
    made.id = ++last_;
    entries_.push_back(made);
  }
  if (owner != nullptr) {
    auto watch = owner->watch([self = weak_from_this(), which = made.id] {
      if (const auto registered = self.lock()) {
        registered->discard(which, "was freed while it was registered: it was deregistered first");
      }
    });
    const std::scoped_lock lock{mutex_};
    const auto found = std::ranges::find(entries_, made.id, &entry::id);
    if (found != entries_.end()) {
      found->watch = std::move(watch);
    }
  }
  return made.id;
}

void registry::renew(communicator_core& core, const deadline& until) {
  {
    const std::scoped_lock lock{mutex_};
    core_ = core.weak_from_this();
  }
  for (const entry& each : snapshot()) {
    const native_registration made = core.attach_joining(each.range, until);
    if (!keep(each.id, made)) {
      core.release_native(each.range.kind, made);  // its memory was freed meanwhile
    }
  }
}

void registry::remove(number which) {
  if (const auto core = present()) {
    if (const auto found = current(which)) {
      core->detach(found->range.kind, found->native);
    }
  }
  static_cast<void>(take(which));
}

void registry::discard(number which, std::string_view reason) noexcept {
  try {
    const auto core = present();
    const auto gone = take(which);
    if (core == nullptr || !gone) {
      return;
    }
    if (!reason.empty()) {
      core->loaded().log().report(
          severity::warning,
          fmt::format(
              "'{}': memory of {} bytes {}", core->options().name, gone->range.bytes, reason));
    }
    core->detach_quietly(gone->range.kind, gone->native);
  } catch (const std::exception&) {
    // Out of memory in a destructor: NCCL lets go of the range with its communicator.
  }
}

void registry::detach(communicator_core& core) noexcept {
  try {
    for (const entry& each : snapshot()) {
      core.release_native(each.range.kind, each.native);
      keep(each.id, {});
    }
  } catch (const std::exception& failure) {
    core.loaded().log().report(failure, "while taking registrations back");
  }
}

native_registration registry::find(number which) const {
  const auto found = current(which);
  return found ? found->native : native_registration{};
}

std::shared_ptr<communicator_core> registry::present() const {
  const std::scoped_lock lock{mutex_};
  return core_.lock();
}

std::optional<registry::entry> registry::current(number which) const {
  const std::scoped_lock lock{mutex_};
  const auto core = core_.lock();
  const auto found = std::ranges::find(entries_, which, &entry::id);
  const bool is_current = core != nullptr && found != entries_.end() &&
                          core->status().state() == communicator_state::ready &&
                          found->native.generation == core->generation();
  return is_current ? std::optional{*found} : std::nullopt;
}

std::vector<registry::entry> registry::snapshot() const {
  const std::scoped_lock lock{mutex_};
  return entries_;
}

bool registry::keep(number which, const native_registration& native) {
  const std::scoped_lock lock{mutex_};
  const auto found = std::ranges::find(entries_, which, &entry::id);
  if (found == entries_.end()) {
    return false;
  }
  found->native = native;
  return true;
}

std::optional<registry::entry> registry::take(number which) {
  const std::scoped_lock lock{mutex_};
  const auto found = std::ranges::find(entries_, which, &entry::id);
  if (found == entries_.end()) {
    return std::nullopt;
  }
  std::optional out{std::move(*found)};
  entries_.erase(found);
  return out;
}

}  // namespace spark_comm::detail
