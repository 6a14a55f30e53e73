// SPDX-License-Identifier: AGPL-3.0-only
// What every exported call begins with: its name and its communicator, in one place, so that a call
// can be delayed, failed or stopped on command without touching each of them.
#pragma once

#include "communicator.hpp"
#include "last_error.hpp"
#include "nccl_abi.hpp"

#include <exception>
#include <new>

namespace spark_comm::host::nccl {

/// A call that has begun. `comm` is null when the handle is null or stale, or the call has none.
struct call_guard {
  const char* name;
  communicator_ptr comm;
};

/// Runs the body of an exported call: `return guarded_call("ncclX", handle, [&](call_guard& call)
/// {...});` Nothing is thrown through the C interface.
template <typename Body>
[[nodiscard]] int guarded_call(const char* name, const ncclComm* handle, Body body) noexcept {
  try {
    call_guard call{.name = name, .comm = handle == nullptr ? nullptr : find_communicator(handle)};
    return body(call);
  } catch (const std::bad_alloc&) {
    remember_error("out of memory");
    return results::system_error;
  } catch (const std::exception& failure) {
    remember_error(failure.what());
    return results::internal_error;
  }
}

/// Whether the call's communicator may take a new operation.
///
/// Returns invalid_argument for no communicator, and for one whose last operation is in progress;
/// the asynchronous error where there is one; invalid_usage after revoke.
[[nodiscard]] int check_ready(const call_guard& call);

/// Stores a failure in a non-blocking communicator, as NCCL does, and returns it.
int keep_failure(const call_guard& call, int code) noexcept;

}  // namespace spark_comm::host::nccl
