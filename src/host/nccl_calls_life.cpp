// SPDX-License-Identifier: AGPL-3.0-only
// Exported calls that end communicators, and those that ask about them.
#include "call_guard.hpp"
#include "communicator.hpp"
#include "group.hpp"
#include "last_error.hpp"
#include "nccl_abi.hpp"
#include "nccl_calls.hpp"
#include "polling.hpp"

namespace spark_comm::host::nccl {
namespace {

// Ends what the communicator still does, and takes its handle away. The flag is up already.
void tear_down(const communicator_ptr& comm, const ncclComm* handle) {
  forget_in_group(comm);
  comm->join_background();
  // An init in another thread ends as soon as it sees the flag.
  static_cast<void>(poll_until([&] { return !comm->state.is_working(); }, [] { return false; }));
  comm->wait_for_running();
  comm->wait_for_graphs();
  retire(handle);
}

template <typename Value>
int answer(const char* name, const ncclComm* handle, int* out, Value value) {
  return guarded_call(name, handle, [&](call_guard& call) {
    if (call.comm == nullptr || out == nullptr) {
      return refuse(results::invalid_argument, "{} : an argument is NULL or gone", call.name);
    }
    if (const int code = check_ready(call); code != results::success) {
      return code;
    }
    *out = value(*call.comm);
    return results::success;
  });
}

}  // namespace

int ncclCommFinalize(ncclComm* handle) {
  return guarded_call("ncclCommFinalize", handle, [&](call_guard& call) {
    if (handle == nullptr) {
      return results::success;
    }
    if (const int code = check_ready(call); code != results::success) {
      return keep_failure(call, code);
    }
    if (call.comm->is_revoked() || !call.comm->finalize()) {
      return keep_failure(
          call, refuse(results::invalid_argument, "{} : finalized or revoked before", call.name));
    }
    return run_as_group([&] {
      return add_job({
          .owner = call.comm,
          .is_blocking = call.comm->options().is_blocking,
          .work =
              [comm = call.comm] {
                comm->drain();
                return results::success;
              },
          .conclude = [](int) {},
      });
    });
  });
}

int ncclCommDestroy(ncclComm* handle) {
  return guarded_call("ncclCommDestroy", handle, [&](call_guard& call) {
    if (handle == nullptr) {
      return results::success;
    }
    if (const int code = check_ready(call); code != results::success) {
      leak_group_depth();  // as NCCL's refused destroy does
      return code;
    }
    run_or_defer([comm = call.comm, handle] {
      forget_in_group(comm);
      comm->drain();
      comm->join_background();
      retire(handle);
    });
    return results::success;
  });
}

int ncclCommAbort(ncclComm* handle) {
  return guarded_call("ncclCommAbort", handle, [&](call_guard& call) {
    if (handle == nullptr) {
      return results::success;
    }
    if (call.comm == nullptr) {
      return refuse(results::invalid_argument, "{} : the communicator is gone", call.name);
    }
    call.comm->raise_abort();
    run_or_defer([comm = call.comm, handle] { tear_down(comm, handle); });
    return results::success;
  });
}

int ncclCommRevoke(ncclComm* handle, int flags) {
  return guarded_call("ncclCommRevoke", handle, [&](call_guard& call) {
    if (handle == nullptr) {
      return results::success;
    }
    if (call.comm == nullptr || flags != 0) {
      return refuse(
          results::invalid_argument, "{} : no communicator, or flags {}", call.name, flags);
    }
    if (call.comm->is_finalized() || !call.comm->revoke()) {
      return refuse(results::invalid_argument, "{} : finalized or revoked before", call.name);
    }
    return run_as_group([&] {
      return add_job({
          .owner = call.comm,
          .is_blocking = call.comm->options().is_blocking,
          .work =
              [comm = call.comm] {
                comm->wait_for_running();
                return results::success;
              },
          .conclude = [](int) {},
      });
    });
  });
}

int ncclCommGetAsyncError(ncclComm* handle, int* state) {
  return guarded_call("ncclCommGetAsyncError", handle, [&](call_guard& call) {
    if (call.comm == nullptr || state == nullptr) {
      return refuse(results::invalid_argument, "{} : an argument is NULL or gone", call.name);
    }
    *state = call.comm->state.poll();
    return results::success;
  });
}

int ncclCommCount(const ncclComm* handle, int* count) {
  return answer(
      "ncclCommCount", handle, count, [](const communicator& comm) { return comm.world_size(); });
}

int ncclCommCuDevice(const ncclComm* handle, int* device) {
  return answer(
      "ncclCommCuDevice", handle, device, [](const communicator& comm) { return comm.device(); });
}

int ncclCommUserRank(const ncclComm* handle, int* rank) {
  return answer(
      "ncclCommUserRank", handle, rank, [](const communicator& comm) { return comm.rank(); });
}

int ncclGetVersion(int* version) {
  return guarded_call("ncclGetVersion", nullptr, [&](call_guard&) {
    if (version == nullptr) {
      return results::invalid_argument;
    }
    *version = version_code;
    return results::success;
  });
}

const char* ncclGetErrorString(int code) {
  return text_of_result(code);
}

const char* ncclGetLastError(ncclComm* /*comm*/) {
  return last_error();
}

}  // namespace spark_comm::host::nccl
