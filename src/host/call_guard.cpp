// SPDX-License-Identifier: AGPL-3.0-only
#include "call_guard.hpp"

#include "last_error.hpp"
#include "nccl_abi.hpp"

namespace spark_comm::host::nccl {

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
