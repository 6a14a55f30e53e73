// SPDX-License-Identifier: AGPL-3.0-only
// How a communicator ends: in order, by an abort, or by a failure.
#include <spark_comm/comm/detail/bounded.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/native_communicator.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/config.hpp>
#include <spark_comm/nccl/library.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/rendezvous/world.hpp>
#include <spark_comm/supervise/communicator_state.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace spark_comm::detail {
namespace {

// What a close may take beyond its own limit, when it has to abort in the end.
constexpr auto abort_after_close = std::chrono::milliseconds{700};

// For a thread inside a native call, before the communicator is aborted under it.
constexpr auto longest_wait_for_issuer = std::chrono::milliseconds{200};

}  // namespace

void communicator_core::wait_for_work(const deadline& until) {
  duration pause = std::chrono::microseconds{20};
  while (true) {
    {
      enter();
      const gate_pass pass{gate_};
      require_operable();
      if (events_.poll_all() == progress::done) {
        return;
      }
    }
    if (until.has_passed()) {
      throw error{errc::timed_out, "operations are still outstanding", {.deadline = until.span()}};
    }
    std::this_thread::sleep_for(std::min(pause, until.remaining()));
    pause = std::min<duration>(2 * pause, std::chrono::milliseconds{1});
  }
}

void communicator_core::tear_down(const deadline& until) {
  wait_for_work(until);
  {
    enter();
    const gate_pass pass{gate_};
    registered_->detach(*this);
  }
  gate_.close();
  paths_->disconnect();
  is_leaving_ = true;
  supervisor_->say_farewell();
  // Its work is over, but destroying it may wait for graphs that hold its operations, or for peers.
  bounded_call destroy{[native = native_, until] { native->destroy(until); }};
  if (destroy.wait(until) == wait_result::timed_out) {
    throw error{errc::timed_out,
                "the native communicator did not end in time: does a graph still hold one of its "
                "operations?",
                {.deadline = until.span()}};
  }
  // A failure or an abort that came meanwhile is the end that it has come to.
  require_operable();
  wait_for_farewells(until);
}

void communicator_core::close_ready(duration limit) {
  if (is_closing_.exchange(true)) {
    throw error{errc::invalid_usage, "another thread is closing the communicator", context()};
  }
  try {
    tear_down(deadline::after(limit));
  } catch (const error& failure) {
    if (failure.kind() == errc::invalid_usage) {
      is_closing_ = false;
      throw;  // another thread issues operations: nothing has been done
    }
    error_context around = context();
    around.operation = "close";
    around.sequence = sequence();
    // Short, because the caller's limit has passed.
    abort_within(std::min<duration>(options_.abort_deadline, abort_after_close));
    throw failure.with_context(around);
  }
}

void communicator_core::close(duration limit) {
  if (!status_.require(communicator_action::close, context())) {
    return;
  }
  if (status_.state() == communicator_state::joining) {
    abort();
    if (!wait_for_join(deadline::after(limit))) {
      error_context around = context();
      around.operation = "close";
      around.deadline = limit;
      throw error{errc::timed_out, "the join has not come out of a native call yet", around};
    }
  }
  const bool is_whole = status_.state() == communicator_state::ready && !is_alone();
  if (is_whole) {
    close_ready(limit);
  }
  gate_.close();
  abort_native(options_.abort_deadline);  // does nothing after an orderly end
  release_paths();
  end_supervision(is_whole ? flight_end::closed : flight_end::broken);
  leave_for_good();
  status_.apply(communicator_event::closed);
}

void communicator_core::abort() noexcept {
  abort_within(options_.abort_deadline);
}

void communicator_core::abort_within(duration limit) noexcept {
  if (!status_.apply(communicator_event::aborted)) {
    return;
  }
  give_up_.request_stop();
  gate_.close();
  paths_->abort();
  {
    const std::scoped_lock lock{life_mutex_};
    if (is_joining_) {
      return;  // the join owns everything still; it sees the state and cleans up
    }
  }
  if (supervisor_ != nullptr) {
    supervisor_->announce_failure({.code = errc::aborted,
                                   .origin = place_.rank,
                                   .sequence = sequence(),
                                   .text = "this rank aborted its communicator",
                                   .peers = {}});
  }
  abort_native(limit);
  release_paths();
  end_supervision(flight_end::aborted);
}

void communicator_core::abort_native(duration limit) noexcept {
  try {
    const deadline until = deadline::after(limit);
    const std::shared_ptr<bounded_call> ending = begin_ending();
    if (ending != nullptr && ending->wait(until) == wait_result::timed_out) {
      loaded_.log().report(
          severity::error,
          fmt::format("ncclCommAbort of '{}' rank {}/{} has not returned after {} ms; its thread "
                      "and memory are left behind",
                      options_.name,
                      place_.rank,
                      place_.world_size,
                      std::chrono::duration_cast<std::chrono::milliseconds>(limit).count()));
    }
  } catch (const std::exception& failure) {
    loaded_.log().report(failure, "while aborting a communicator");
  }
}

std::shared_ptr<bounded_call> communicator_core::begin_ending() {
  const std::scoped_lock lock{life_mutex_};
  if (ending_ == nullptr && native_ != nullptr && native_->is_live()) {
    // Whoever is inside a native call gets a moment to come out; one that is stuck there is what
    // the abort is for, so it goes ahead all the same.
    ending_ = std::make_shared<bounded_call>([self = shared_from_this(), native = native_] {
      static_cast<void>(self->gate_.wait_until_empty(deadline::after(longest_wait_for_issuer)));
      native->abort();
    });
  }
  return ending_;
}

void communicator_core::start_ending() noexcept {
  {
    const std::scoped_lock lock{life_mutex_};
    if (is_joining_) {
      return;  // the join sees the state and cleans up
    }
  }
  gate_.close();
  paths_->abort();
  try {
    static_cast<void>(begin_ending());
  } catch (const std::exception& failure) {
    loaded_.log().report(failure, "while aborting a broken communicator");
  }
}

void communicator_core::end_supervision(flight_end how) noexcept {
  const std::scoped_lock lock{end_mutex_};
  if (supervisor_ != nullptr) {
    supervisor_->stop(how);
  } else if (session_ != nullptr) {
    session_->stop();
  }
}

void communicator_core::fail_and_announce(const error& cause) noexcept {
  fail(cause);
  if (supervisor_ == nullptr) {
    return;
  }
  start_ending();
  try {
    supervisor_->announce_failure(
        {.code = cause.kind(),
         .origin = place_.rank,
         .sequence = cause.context().sequence,
         .text = cause.message(),
         .peers = {cause.context().peers.begin(), cause.context().peers.end()}});
  } catch (const std::exception& failure) {
    loaded_.log().report(failure, "while telling the peers of a failure");
  }
}

}  // namespace spark_comm::detail
