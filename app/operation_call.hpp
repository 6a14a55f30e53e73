// SPDX-License-Identifier: AGPL-3.0-only
// The one place where an operation of the tool becomes a call of the library.
#pragma once

#include "operation.hpp"

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <cstddef>

namespace spark_comm::app {

/// Arguments of any operation; those that it does not take are ignored.
struct operation_call {
  operation what = operation::all_reduce;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;  ///< Elements a block.
  data_type dtype = data_type::float32;
  reduce_op op = reduce_op::sum;
  int root = 0;
};

/// Enqueues it on `s`.
void enqueue(communicator& comm, const operation_call& call, cuda::stream_ref s);

/// Waits until `s` is drained. Throws: failure when `limit` passes, naming `what`.
void drain(communicator& comm, cuda::stream_ref s, duration limit, operation what);

}  // namespace spark_comm::app
