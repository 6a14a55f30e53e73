// SPDX-License-Identifier: AGPL-3.0-only
// Exported operations: their arguments are checked as far as NCCL checks them, and no further.
#include "call_guard.hpp"
#include "collectives.hpp"
#include "group.hpp"
#include "last_error.hpp"
#include "nccl_abi.hpp"
#include "nccl_calls.hpp"
#include "reduce.hpp"
#include "stream.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <cstddef>
#include <utility>

namespace spark_comm::host::nccl {
namespace {

// An operation as the caller gave it.
struct request {
  operation_kind kind;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  int dtype = 0;
  int op = 0;  // sum, where there is none
  int peer = 0;
  CUstream_st* stream = nullptr;
};

int find_reduction(const call_guard& call, const request& asked, reduction& how) {
  if (asked.dtype < 0 || asked.dtype >= data_type_count) {
    return refuse(results::invalid_argument, "{} : invalid type {}", call.name, asked.dtype);
  }
  const auto dtype = static_cast<data_type>(asked.dtype);
  if (asked.op >= 0 && asked.op < built_in_op_count) {
    how = make_reduction(dtype, static_cast<reduce_op>(asked.op), call.comm->world_size());
    return results::success;
  }
  const auto own = static_cast<std::size_t>(asked.op - built_in_op_count);
  const auto& known = call.comm->own_ops;
  const reduction* found = nullptr;
  if (asked.op >= 0 && own < known.size() && known[own].has_value()) {
    found = &*known[own];  // NOLINT(bugprone-unchecked-optional-access): asked just before
  }
  if (found == nullptr) {
    return refuse(results::invalid_argument,
                  "{} : reduction operation {} unknown to this communicator",
                  call.name,
                  asked.op);
  }
  if (found->dtype != dtype) {
    return refuse(results::invalid_argument,
                  "{} : reduction operation {} was made for another type",
                  call.name,
                  asked.op);
  }
  how = *found;
  return results::success;
}

int add_request(const call_guard& call, const request& asked) {
  if (const int code = check_ready(call); code != results::success) {
    return code;
  }
  if (call.comm->is_revoked()) {
    return refuse(results::invalid_usage, "{} : the communicator was revoked", call.name);
  }
  if (asked.peer < 0 || asked.peer >= call.comm->world_size()) {
    return refuse(results::invalid_argument,
                  "{} : invalid rank {} (should be in the 0..{} range)",
                  call.name,
                  asked.peer,
                  call.comm->world_size() - 1);
  }
  operation op{.kind = asked.kind,
               .in = static_cast<const std::byte*>(asked.in),
               .out = static_cast<std::byte*>(asked.out),
               .count = asked.count,
               .how = {},
               .peer = asked.peer};
  if (const int code = find_reduction(call, asked, op.how); code != results::success) {
    return code;
  }
  // Empty collectives are dropped, without any synchronization; empty messages are real.
  if (asked.count == 0 && !is_message(asked.kind)) {
    return results::success;
  }
  stream_ptr target = find_stream(asked.stream);
  if (target == nullptr) {
    return refuse(results::unhandled_cuda_error, "{} : invalid stream", call.name);
  }
  return add_operation(call.comm, {.op = op, .target = std::move(target)});
}

int submit_request(const char* name, const ncclComm* comm, const request& asked) {
  return guarded_call(name, comm, [&](call_guard& call) {
    return keep_failure(call, run_as_group([&] { return add_request(call, asked); }));
  });
}

}  // namespace

int ncclAllReduce(const void* in,
                  void* out,
                  std::size_t count,
                  int dtype,
                  int op,
                  ncclComm* comm,
                  CUstream_st* stream) {
  return submit_request("ncclAllReduce",
                        comm,
                        {.kind = operation_kind::all_reduce,
                         .in = in,
                         .out = out,
                         .count = count,
                         .dtype = dtype,
                         .op = op,
                         .stream = stream});
}

int ncclReduce(const void* in,
               void* out,
               std::size_t count,
               int dtype,
               int op,
               int root,
               ncclComm* comm,
               CUstream_st* stream) {
  return submit_request("ncclReduce",
                        comm,
                        {.kind = operation_kind::reduce,
                         .in = in,
                         .out = out,
                         .count = count,
                         .dtype = dtype,
                         .op = op,
                         .peer = root,
                         .stream = stream});
}

int ncclBroadcast(const void* in,
                  void* out,
                  std::size_t count,
                  int dtype,
                  int root,
                  ncclComm* comm,
                  CUstream_st* stream) {
  return submit_request("ncclBroadcast",
                        comm,
                        {.kind = operation_kind::broadcast,
                         .in = in,
                         .out = out,
                         .count = count,
                         .dtype = dtype,
                         .peer = root,
                         .stream = stream});
}

int ncclBcast(
    void* buffer, std::size_t count, int dtype, int root, ncclComm* comm, CUstream_st* stream) {
  return submit_request("ncclBcast",
                        comm,
                        {.kind = operation_kind::broadcast,
                         .in = buffer,
                         .out = buffer,
                         .count = count,
                         .dtype = dtype,
                         .peer = root,
                         .stream = stream});
}

int ncclAllGather(
    const void* in, void* out, std::size_t count, int dtype, ncclComm* comm, CUstream_st* stream) {
  return submit_request("ncclAllGather",
                        comm,
                        {.kind = operation_kind::all_gather,
                         .in = in,
                         .out = out,
                         .count = count,
                         .dtype = dtype,
                         .stream = stream});
}

int ncclReduceScatter(const void* in,
                      void* out,
                      std::size_t count,
                      int dtype,
                      int op,
                      ncclComm* comm,
                      CUstream_st* stream) {
  return submit_request("ncclReduceScatter",
                        comm,
                        {.kind = operation_kind::reduce_scatter,
                         .in = in,
                         .out = out,
                         .count = count,
                         .dtype = dtype,
                         .op = op,
                         .stream = stream});
}

int ncclAlltoAll(
    const void* in, void* out, std::size_t count, int dtype, ncclComm* comm, CUstream_st* stream) {
  return submit_request("ncclAlltoAll",
                        comm,
                        {.kind = operation_kind::all_to_all,
                         .in = in,
                         .out = out,
                         .count = count,
                         .dtype = dtype,
                         .stream = stream});
}

int ncclGather(const void* in,
               void* out,
               std::size_t count,
               int dtype,
               int root,
               ncclComm* comm,
               CUstream_st* stream) {
  return submit_request("ncclGather",
                        comm,
                        {.kind = operation_kind::gather,
                         .in = in,
                         .out = out,
                         .count = count,
                         .dtype = dtype,
                         .peer = root,
                         .stream = stream});
}

int ncclScatter(const void* in,
                void* out,
                std::size_t count,
                int dtype,
                int root,
                ncclComm* comm,
                CUstream_st* stream) {
  return submit_request("ncclScatter",
                        comm,
                        {.kind = operation_kind::scatter,
                         .in = in,
                         .out = out,
                         .count = count,
                         .dtype = dtype,
                         .peer = root,
                         .stream = stream});
}

int ncclSend(
    const void* in, std::size_t count, int dtype, int peer, ncclComm* comm, CUstream_st* stream) {
  return submit_request("ncclSend",
                        comm,
                        {.kind = operation_kind::send,
                         .in = in,
                         .count = count,
                         .dtype = dtype,
                         .peer = peer,
                         .stream = stream});
}

int ncclRecv(
    void* out, std::size_t count, int dtype, int peer, ncclComm* comm, CUstream_st* stream) {
  return submit_request("ncclRecv",
                        comm,
                        {.kind = operation_kind::recv,
                         .out = out,
                         .count = count,
                         .dtype = dtype,
                         .peer = peer,
                         .stream = stream});
}

}  // namespace spark_comm::host::nccl
