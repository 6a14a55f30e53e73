// SPDX-License-Identifier: AGPL-3.0-only
// What every exported call begins with: its name and its communicator, in one place, so that a call
// can be delayed, failed or stopped on command without touching each of them.
#pragma once

#include "communicator.hpp"
#include "fault_injection.hpp"
#include "fault_script.hpp"
#include "last_error.hpp"
#include "nccl_abi.hpp"

#include <exception>
#include <new>

namespace spark_comm::host::nccl {

/// A call that has begun. `comm` is null when the handle is null or stale, or the call has none; a
/// call that makes one without blocking puts it there.
struct call_guard {
  const char* name;
  communicator_ptr comm;
};

/// The communicator of a handle; null for a null one, and for a stale one, which is counted.
[[nodiscard]] communicator_ptr look_up(const ncclComm* handle) noexcept;

// What the fault script wants of a call: before it, after it, and instead of it.
[[nodiscard]] call_fault begin_nccl_call(const call_guard& call, int rank);
void pretend_progress(const call_guard& call, const call_fault& fault) noexcept;
void fail_call(const call_guard& call, int code) noexcept;

template <typename Body>
[[nodiscard]] int run_with_faults(call_guard& call, int rank, Body& body) {
  const call_fault fault = begin_nccl_call(call, rank);
  if (!fault.code) {
    const int code = body(call);
    pretend_progress(call, fault);
    return code;
  }
  fail_call(call, *fault.code);
  if (is_release(call.name)) {
    static_cast<void>(body(call));
  }
  return *fault.code;
}

template <typename Body>
[[nodiscard]] int run_guarded(call_guard call, int rank, Body& body) noexcept {
  try {
    return may_have_faults() ? run_with_faults(call, rank, body) : body(call);
  } catch (const std::bad_alloc&) {
    remember_error("out of memory");
    return results::system_error;
  } catch (const std::exception& failure) {
    remember_error(failure.what());
    return results::internal_error;
  }
}

/// Runs the body of an exported call: `return guarded_call("ncclX", handle, [&](call_guard& call)
/// {...});` Nothing is thrown through the C interface.
template <typename Body>
[[nodiscard]] int guarded_call(const char* name, const ncclComm* handle, Body body) noexcept {
  return run_guarded({.name = name, .comm = look_up(handle)}, any_rank, body);
}

/// The same for a call that makes the communicator of `rank`.
template <typename Body>
[[nodiscard]] int guarded_init(const char* name, int rank, Body body) noexcept {
  return run_guarded({.name = name, .comm = nullptr}, rank, body);
}

/// Whether the call's communicator may take a new operation.
///
/// Returns invalid_argument for no communicator, and for one whose last operation is in progress;
/// the asynchronous error where there is one; invalid_usage after revoke.
[[nodiscard]] int check_ready(const call_guard& call);

/// Stores a failure in a non-blocking communicator, as NCCL does, and returns it.
int keep_failure(const call_guard& call, int code) noexcept;

}  // namespace spark_comm::host::nccl
