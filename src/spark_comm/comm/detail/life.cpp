// SPDX-License-Identifier: AGPL-3.0-only
// How a communicator joins, and the ways in which it ends.
#include <spark_comm/comm/detail/bounded.hpp>
#include <spark_comm/comm/detail/call_gate.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/native_communicator.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/communicator_state.hpp>
#include <spark_comm/supervise/flight_entry.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <thread>

namespace spark_comm::detail {
namespace {

// What a close may take beyond its own limit, when it has to abort in the end.
constexpr auto abort_after_close = std::chrono::milliseconds{700};

// For a thread inside a native call, before the communicator is aborted under it.
constexpr auto longest_wait_for_issuer = std::chrono::milliseconds{200};

}  // namespace

void communicator_core::join(const deadline& until) {
  error_context around = context();
  around.operation = "join";
  around.deadline = until.span();
  try {
    if (!is_alone()) {
      connect(until);
    }
    if (!status_.apply(communicator_event::joined)) {
      status_.require(communicator_action::operate, around);
    }
  } catch (const error& failure) {
    const error full = failure.with_context(around);
    give_up_join(full);
    throw full;
  } catch (const std::exception& failure) {
    const error full{errc::internal, failure.what(), around};
    give_up_join(full);
    throw full;
  }
  end_join();
}

void communicator_core::give_up_join(const error& cause) noexcept {
  fail_and_announce(cause);
  gate_.close();
  abort_native(options_.abort_deadline);
  end_supervision(flight_end::broken);
  end_join();
}

void communicator_core::end_join() noexcept {
  {
    const std::scoped_lock lock{life_mutex_};
    is_joining_ = false;
  }
  join_over_.notify_all();
}

bool communicator_core::wait_for_join(const deadline& until) {
  std::unique_lock lock{life_mutex_};
  return join_over_.wait_for(lock, until.remaining(), [this] { return !is_joining_; });
}

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
  gate_.close();
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
  end_supervision(is_whole ? flight_end::closed : flight_end::broken);
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
  end_supervision(flight_end::aborted);
}

void communicator_core::abort_native(duration limit) noexcept {
  std::shared_ptr<native_communicator> native;
  {
    const std::scoped_lock lock{life_mutex_};
    native = native_;
  }
  if (native == nullptr || !native->is_live()) {
    return;
  }
  try {
    const deadline until = deadline::after(limit);
    // Whoever is inside a native call gets a moment to come out; one that is stuck there is what
    // the abort is for, so it goes ahead all the same.
    static_cast<void>(gate_.wait_until_empty(
        deadline::after(std::min<duration>(limit / 4, longest_wait_for_issuer))));
    bounded_call call{[native] { native->abort(); }};
    if (call.wait(until) == wait_result::timed_out) {
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

}  // namespace spark_comm::detail
