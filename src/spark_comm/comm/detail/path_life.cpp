// SPDX-License-Identifier: AGPL-3.0-only
// What a communicator does about its paths: asks their kernels, and frees their memory when no peer
// uses it any more.
#include <spark_comm/comm/detail/bounded.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/communicator_state.hpp>
#include <spark_comm/supervise/options.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <optional>
#include <thread>

namespace spark_comm::detail {

void communicator_core::require_healthy() {
  require_operable();
  if (const std::optional<native_failure> failure = paths_->failure()) {
    error_context around = context();
    around.peers = failure->peers;
    fail_and_announce(error{failure->code, failure->text, around, failure->native});
    status_.require(communicator_action::operate, context());
  }
}

void communicator_core::wait_for_farewells(const deadline& until) const {
  if (!paths_->is_shared() || options_.supervise.enabled == supervision::off) {
    return;
  }
  // A rank says farewell when it has let go of its peers' memory: before that ours must not go.
  const auto is_here = [](const peer_observation& peer) {
    return peer.connection == peer_connection::open && !peer.failure;
  };
  while (std::ranges::any_of(supervisor_->peers(), is_here)) {
    if (until.has_passed()) {
      throw error{errc::timed_out, "the peers did not close in time", {.deadline = until.span()}};
    }
    std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
}

void communicator_core::release_paths() noexcept {
  try {
    // Freeing waits for the kernels that use the memory; the abort word has told them to end.
    bounded_call call{[paths = paths_] { paths->release(); }};
    if (call.wait(deadline::after(options_.abort_deadline)) == wait_result::timed_out) {
      loaded_.log().report(severity::error,
                           fmt::format("the memory of the paths of '{}' rank {}/{} is left behind: "
                                       "a kernel still holds it",
                                       options_.name,
                                       place_.rank,
                                       place_.world_size));
    }
  } catch (const std::exception& failure) {
    loaded_.log().report(failure, "while freeing the memory of paths");
  }
}

}  // namespace spark_comm::detail
