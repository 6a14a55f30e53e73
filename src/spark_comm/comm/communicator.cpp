// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/detail/bounded.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/generations.hpp>
#include <spark_comm/comm/detail/registry.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/registration.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/rendezvous/world.hpp>
#include <spark_comm/supervise/communicator_state.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace spark_comm {
namespace {

// Beyond its own deadline a join needs this long to clean up after itself.
constexpr auto join_grace = std::chrono::seconds{1};

}  // namespace

communicator::communicator(std::unique_ptr<detail::generations> all) noexcept
    : all_(std::move(all)) {}

communicator::communicator(communicator&&) noexcept = default;

communicator& communicator::operator=(communicator&& other) noexcept {
  if (this != &other) {
    end();
    all_ = std::move(other.all_);
    join_ = std::move(other.join_);
  }
  return *this;
}

communicator::~communicator() {
  end();
}

void communicator::end() noexcept {
  if (all_ == nullptr) {
    return;
  }
  if (state() == communicator_state::ready) {
    all_->loaded().log().report(
        severity::warning,
        "communicator '" + name() + "' was destroyed without close; it is aborted");
  }
  abort();
  if (join_ != nullptr) {
    finish_join();
  }
}

void communicator::finish_join() noexcept {
  try {
    if (join_->wait(deadline::after(core().options().abort_deadline + join_grace)) ==
        wait_result::timed_out) {
      all_->loaded().log().report(
          severity::error,
          "the join of '" + name() + "' is stuck in a native call; its thread is left behind");
    }
  } catch (const std::exception&) {
    // What it threw is what `poll_join` would have told, or the abort's own doing.
  }
  join_.reset();
}

void communicator::begin_join(duration limit) {
  const deadline until = deadline::after(limit);
  join_ =
      std::make_unique<detail::bounded_call>([core = all_->hold(), until] { core->join(until); });
}

void communicator::wait_for_join(duration limit, const char* operation) {
  const duration longest = limit + core().options().abort_deadline + join_grace;
  const std::unique_ptr<detail::bounded_call> join = std::move(join_);
  if (join->wait(deadline::after(longest)) == wait_result::timed_out) {
    error_context around = core().context();
    around.operation = operation;
    around.deadline = limit;
    throw error{errc::timed_out, "it is stuck in a native call; its thread is left behind", around};
  }
}

communicator communicator::start_join(const runtime& loaded,
                                      const world& place,
                                      const join_options& options) {
  communicator comm{
      std::make_unique<detail::generations>(std::make_shared<detail::communicator_core>(
          loaded, place, options, std::make_shared<detail::registry>()))};
  comm.begin_join(options.deadline);
  return comm;
}

communicator communicator::join(const runtime& loaded,
                                const world& place,
                                const join_options& options) {
  communicator comm = start_join(loaded, place, options);
  comm.wait_for_join(options.deadline, "join");
  return comm;
}

progress communicator::poll_join() {
  if (join_ == nullptr) {
    core().require_operable();
    return progress::done;
  }
  if (join_->poll() == progress::pending) {
    return progress::pending;
  }
  join_.reset();
  return progress::done;
}

void communicator::reconnect(const reconnect_options& options) {
  detail::communicator_core& old = core();
  static_cast<void>(old.status().require(communicator_action::reconnect, old.context()));
  if (options.deadline <= duration::zero()) {
    throw error{errc::invalid_argument, "deadlines must be longer than zero", old.context()};
  }
  const deadline until = deadline::after(options.deadline);
  const bool was_aborted = state() == communicator_state::aborted;
  old.retire();
  join_options again = old.options();
  again.device = old.device().ordinal();  // the buffers are there, whatever number the rank gets
  again.way_in = rendezvous::entry::founding;
  const detail::lineage before = old.bequeath(options.who);
  all_->begin(std::make_shared<detail::communicator_core>(
      old.loaded(), before.place, again, all_->registered(), before));
  if (!was_aborted && old.status().state() == communicator_state::aborted) {
    abort();  // another thread's, which met the old one
  }
  begin_join(std::max(until.remaining(), duration{1}));
  wait_for_join(options.deadline, "reconnect");
}

registration communicator::register_buffer(void* address, std::size_t bytes) {
  return registration{add({detail::registration_kind::buffer, address, bytes}, nullptr)};
}

registration communicator::register_buffer(const cuda::device_buffer& memory) {
  return registration{
      add({detail::registration_kind::buffer, memory.address(), memory.size_bytes()}, &memory)};
}

window communicator::register_window(void* address, std::size_t bytes) {
  return window{add({detail::registration_kind::window, address, bytes}, nullptr)};
}

window communicator::register_window(const cuda::device_buffer& memory) {
  return window{
      add({detail::registration_kind::window, memory.address(), memory.size_bytes()}, &memory)};
}

detail::registry_entry communicator::add(const detail::memory_range& range,
                                         const cuda::device_buffer* owner) {
  const deadline until = deadline::after(core().options().operation_deadline);
  return {all_->registered(), all_->registered()->add(core(), range, owner, until), range};
}

detail::communicator_core& communicator::core() const {
  if (all_ == nullptr) {
    throw error{errc::invalid_usage, "the communicator was moved from"};
  }
  return all_->present();
}

int communicator::rank() const noexcept {
  return all_->present().place().rank;
}

int communicator::world_size() const noexcept {
  return all_->present().place().world_size;
}

const std::string& communicator::name() const noexcept {
  return all_->name();
}

const cuda::device& communicator::device() const noexcept {
  return all_->device();
}

const runtime& communicator::loaded_runtime() const noexcept {
  return all_->loaded();
}

communicator_state communicator::state() const noexcept {
  return all_->hold()->status().state();
}

std::uint64_t communicator::sequence() const noexcept {
  return all_->present().sequence();
}

std::uint64_t communicator::generation() const noexcept {
  return all_->hold()->generation();
}

std::optional<error> communicator::last_error() const {
  const std::shared_ptr<const error> first = all_->hold()->status().first_error();
  return first == nullptr ? std::nullopt : std::optional{*first};
}

wait_result communicator::wait(cuda::stream_ref s, duration limit) {
  // A decode step is over in tens of microseconds: for so long the answer is worth a busy core.
  constexpr int polls_before_sleep = 200;
  constexpr auto longest_pause = std::chrono::microseconds{500};
  const deadline until = deadline::after(limit);
  duration pause = std::chrono::microseconds{5};
  // The generation in which it began: a reconnect on another thread ends this wait.
  static_cast<void>(core());  // throws when it was moved from
  const std::shared_ptr<detail::communicator_core> present = all_->hold();
  for (int polls = 0;; ++polls) {
    present->require_operable();
    if (present->poll(s) == progress::done) {
      present->require_healthy();  // a kernel that gave up is over, too
      return wait_result::done;
    }
    if (until.has_passed()) {
      return wait_result::timed_out;
    }
    if (polls >= polls_before_sleep) {
      std::this_thread::sleep_for(std::min(pause, until.remaining()));
      pause = std::min<duration>(2 * pause, longest_pause);
    }
  }
}

void communicator::close(duration limit) {
  core().close(limit);
}

void communicator::abort() noexcept {
  if (all_ != nullptr) {
    all_->hold()->abort();
  }
}

}  // namespace spark_comm
