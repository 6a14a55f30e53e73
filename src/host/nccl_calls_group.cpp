// SPDX-License-Identifier: AGPL-3.0-only
// Exported calls of groups and of own reduction operations.
#include "call_guard.hpp"
#include "group.hpp"
#include "last_error.hpp"
#include "nccl_abi.hpp"
#include "nccl_calls.hpp"
#include "reduce.hpp"

#include <spark_comm/core/data_type.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

namespace spark_comm::host::nccl {

int ncclGroupStart() {
  return guarded_call("ncclGroupStart", nullptr, [](call_guard&) {
    open_group();
    return results::success;
  });
}

int ncclGroupEnd() {
  return guarded_call("ncclGroupEnd", nullptr, [](call_guard&) { return close_group(); });
}

int ncclGroupSimulateEnd(simulation_info* info) {
  return guarded_call("ncclGroupSimulateEnd", nullptr, [info](call_guard& call) {
    constexpr unsigned int simulation_magic = 0x74685283;
    if (info != nullptr) {
      if (info->magic != simulation_magic) {
        return refuse(results::invalid_argument, "{} : simInfo not initialized", call.name);
      }
      info->estimated_time = -1.0F;  // nothing is known about the time
    }
    return simulate_group_end();
  });
}

int ncclRedOpCreatePreMulSum(int* op, void* scalar, int dtype, int residence, ncclComm* handle) {
  return guarded_call("ncclRedOpCreatePreMulSum", handle, [&](call_guard& call) {
    if (const int code = check_ready(call); code != results::success) {
      return keep_failure(call, code);
    }
    const bool is_residence = residence == 0 || residence == 1;
    if (op == nullptr || scalar == nullptr || !is_residence || dtype < 0 ||
        dtype >= data_type_count) {
      return keep_failure(call,
                          refuse(results::invalid_argument, "{} : invalid argument", call.name));
    }
    // Read now, also where NCCL would read "device" memory later: with plain memory it may not be
    // there any more.
    auto& known = call.comm->own_ops;
    auto place = std::ranges::find_if(known, [](const auto& each) { return !each.has_value(); });
    if (place == known.end()) {
      place = known.insert(known.end(), std::nullopt);
    }
    *place = make_scaled_sum(static_cast<data_type>(dtype), scalar);
    *op = built_in_op_count + static_cast<int>(place - known.begin());
    return results::success;
  });
}

int ncclRedOpDestroy(int op, ncclComm* handle) {
  return guarded_call("ncclRedOpDestroy", handle, [&](call_guard& call) {
    if (call.comm == nullptr) {
      return refuse(results::invalid_argument, "{} : the communicator is NULL or gone", call.name);
    }
    const auto own = static_cast<std::size_t>(op - built_in_op_count);
    auto& known = call.comm->own_ops;
    if (op < built_in_op_count || own >= known.size() || !known[own].has_value()) {
      return refuse(results::invalid_argument, "{} : unknown operation {}", call.name, op);
    }
    known[own].reset();
    return results::success;
  });
}

}  // namespace spark_comm::host::nccl
