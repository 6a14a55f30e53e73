// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/detail/bounded.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/rendezvous/world.hpp>
#include <spark_comm/supervise/communicator_state.hpp>

#include <algorithm>
#include <chrono>
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

communicator::communicator(std::shared_ptr<detail::communicator_core> core,
                           std::unique_ptr<detail::bounded_call> join) noexcept
    : core_(std::move(core)), join_(std::move(join)) {}

communicator::communicator(communicator&&) noexcept = default;

communicator& communicator::operator=(communicator&& other) noexcept {
  if (this != &other) {
    end();
    core_ = std::move(other.core_);
    join_ = std::move(other.join_);
  }
  return *this;
}

communicator::~communicator() {
  end();
}

void communicator::end() noexcept {
  if (core_ == nullptr) {
    return;
  }
  if (core_->status().state() == communicator_state::ready) {
    core_->loaded().log().report(
        severity::warning,
        "communicator '" + core_->options().name + "' was destroyed without close; it is aborted");
  }
  core_->abort();
  if (join_ != nullptr) {
    finish_join();
  }
}

void communicator::finish_join() noexcept {
  try {
    if (join_->wait(deadline::after(core_->options().abort_deadline + join_grace)) ==
        wait_result::timed_out) {
      core_->loaded().log().report(severity::error,
                                   "the join of '" + core_->options().name +
                                       "' is stuck in a native call; its thread is left behind");
    }
  } catch (const std::exception&) {
    // What it threw is what `poll_join` would have told, or the abort's own doing.
  }
  join_.reset();
}

communicator communicator::start_join(const runtime& loaded,
                                      const world& place,
                                      const join_options& options) {
  auto core = std::make_shared<detail::communicator_core>(loaded, place, options);
  const deadline until = deadline::after(options.deadline);
  auto join = std::make_unique<detail::bounded_call>([core, until] { core->join(until); });
  return communicator{std::move(core), std::move(join)};
}

communicator communicator::join(const runtime& loaded,
                                const world& place,
                                const join_options& options) {
  communicator comm = start_join(loaded, place, options);
  const duration limit = options.deadline + options.abort_deadline + join_grace;
  if (comm.join_->wait(deadline::after(limit)) == wait_result::timed_out) {
    error_context around = comm.core().context();
    around.operation = "join";
    around.deadline = options.deadline;
    throw error{
        errc::timed_out, "the join is stuck in a native call; its thread is left behind", around};
  }
  comm.join_.reset();
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

detail::communicator_core& communicator::core() const {
  if (core_ == nullptr) {
    throw error{errc::invalid_usage, "the communicator was moved from"};
  }
  return *core_;
}

int communicator::rank() const noexcept {
  return core_->place().rank;
}

int communicator::world_size() const noexcept {
  return core_->place().world_size;
}

const std::string& communicator::name() const noexcept {
  return core_->options().name;
}

const cuda::device& communicator::device() const noexcept {
  return core_->device();
}

const runtime& communicator::loaded_runtime() const noexcept {
  return core_->loaded();
}

communicator_state communicator::state() const noexcept {
  return core_->status().state();
}

std::uint64_t communicator::sequence() const noexcept {
  return core_->sequence();
}

std::uint64_t communicator::generation() const noexcept {
  return core_->generation();
}

std::optional<error> communicator::last_error() const {
  const std::shared_ptr<const error> first = core().status().first_error();
  return first == nullptr ? std::nullopt : std::optional{*first};
}

wait_result communicator::wait(cuda::stream_ref s, duration limit) {
  // A decode step is over in tens of microseconds: for so long the answer is worth a busy core.
  constexpr int polls_before_sleep = 200;
  constexpr auto longest_pause = std::chrono::microseconds{500};
  const deadline until = deadline::after(limit);
  duration pause = std::chrono::microseconds{5};
  for (int polls = 0;; ++polls) {
    core().require_operable();
    if (core().poll(s) == progress::done) {
      core().require_healthy();  // a kernel that gave up is over, too
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
  if (core_ != nullptr) {
    core_->abort();
  }
}

}  // namespace spark_comm
