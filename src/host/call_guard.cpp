// SPDX-License-Identifier: AGPL-3.0-only
#include "call_guard.hpp"

#include "communicator.hpp"
#include "fault_injection.hpp"
#include "fault_script.hpp"
#include "group.hpp"
#include "last_error.hpp"
#include "nccl_abi.hpp"
#include "nccl_calls.hpp"

#include <atomic>
#include <string_view>

namespace spark_comm::host::nccl {

namespace {

constinit std::atomic<int> stale_calls{0};

}  // namespace

communicator_ptr look_up(const ncclComm* handle) noexcept {
  if (handle == nullptr) {
    return nullptr;
  }
  communicator_ptr found = find_communicator(handle);
  if (found == nullptr) {
    stale_calls.fetch_add(1, std::memory_order_relaxed);
  }
  return found;
}

int spark_comm_host_stale_calls() {
  return stale_calls.load(std::memory_order_relaxed);
}

call_fault begin_nccl_call(const call_guard& call, int rank) {
  faultable_call begun{.name = call.name,
                       .rank = call.comm == nullptr ? rank : call.comm->rank(),
                       .aborted_code = results::internal_error,
                       .refused_code = results::invalid_usage};
  if (call.comm != nullptr) {
    begun.is_aborted = [comm = call.comm] { return comm->is_aborted(); };
  }
  return begin_call(begun);
}

void pretend_progress(const call_guard& call, const call_fault& fault) noexcept {
  if (fault.polls > 0 && call.comm != nullptr) {
    call.comm->state.pretend(fault.polls, fault.last_code);
  }
}

void fail_call(const call_guard& call, int code) noexcept {
  remember_error("failed on command of the fault script");
  const bool ends_group = std::string_view{call.name} == "ncclGroupEnd";
  if (is_in_group() && (ends_group || is_gathered(call.name))) {
    fail_group(code);
  } else if (is_gathered(call.name)) {
    keep_failure(call, code);
  }
}

int check_ready(const call_guard& call) {
  if (call.comm == nullptr) {
    return refuse(results::invalid_argument, "{} : the communicator is NULL or gone", call.name);
  }
  const int state = call.comm->state.get();
  if (state == results::in_progress) {
    return refuse(results::invalid_argument,
                  "{} : Attempt to use communicator before the previous operation returned "
                  "ncclSuccess",
                  call.name);
  }
  if (state != results::success) {
    return refuse(state, "{} : the communicator has failed before", call.name);
  }
  if (call.comm->is_aborted()) {
    return refuse(results::invalid_usage, "{} : the communicator was aborted", call.name);
  }
  return results::success;
}

int keep_failure(const call_guard& call, int code) noexcept {
  const bool is_failure = code != results::success && code != results::in_progress;
  if (is_failure && call.comm != nullptr && !call.comm->options().is_blocking) {
    call.comm->state.fail(code);
  }
  return code;
}

}  // namespace spark_comm::host::nccl
