// SPDX-License-Identifier: AGPL-3.0-only
// Exported calls that make communicators.
#include "bootstrap.hpp"
#include "call_guard.hpp"
#include "group.hpp"
#include "init.hpp"
#include "last_error.hpp"
#include "nccl_abi.hpp"
#include "nccl_calls.hpp"
#include "stream.hpp"
#include "unique_ids.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace spark_comm::host::nccl {
namespace {

// A thread that never chose a device is on the first one, as with the CUDA runtime.
int device_or_first() noexcept {
  return std::max(current_device(), 0);
}

// An init whose arguments are refused leaves the thread's group open, as NCCL's does: everything
// that the thread issues afterwards is queued and never launched.
template <typename Add>
int init_with_config(call_guard& call, ncclComm** made, Add add) {
  int refused = results::success;
  const int code = run_as_group([&] { return refused = add(); });
  if (refused != results::success) {
    leak_group_depth();
  } else {
    call.comm = find_communicator(*made);
  }
  return code;
}

// Work was begun; only its state says that it is not over.
int hide_progress(int code) noexcept {
  return code == results::in_progress ? results::success : code;
}

}  // namespace

int ncclGetUniqueId(unique_id* id) {
  return guarded_call("ncclGetUniqueId", nullptr, [&](call_guard& call) {
    if (id == nullptr) {
      return refuse(results::invalid_argument, "{} : uniqueId argument is NULL", call.name);
    }
    return make_unique_id(*id);
  });
}

int ncclCommInitRank(ncclComm** comm, int ranks, unique_id id, int rank) {
  return guarded_init("ncclCommInitRank", rank, [&](call_guard&) {
    const arrival self{.rank = rank, .world_size = ranks, .device = device_or_first()};
    return run_as_group([&] { return add_init(comm, id, self, nullptr, init_mode::synchronous); });
  });
}

int ncclCommInitRankConfig(ncclComm** comm, int ranks, unique_id id, int rank, config* options) {
  return guarded_init("ncclCommInitRankConfig", rank, [&](call_guard& call) {
    const arrival self{.rank = rank, .world_size = ranks, .device = device_or_first()};
    return init_with_config(
        call, comm, [&] { return add_init(comm, id, self, options, init_mode::by_config); });
  });
}

int ncclCommInitRankScalable(
    ncclComm** comm, int ranks, int rank, int id_count, unique_id* ids, config* options) {
  return guarded_init("ncclCommInitRankScalable", rank, [&](call_guard& call) {
    const arrival self{.rank = rank, .world_size = ranks, .device = device_or_first()};
    return init_with_config(call, comm, [&] {
      if (ids == nullptr || id_count < 1 || id_count > ranks) {
        return refuse(results::invalid_argument,
                      "{} : {} ids for {} ranks: use 1 to as many as there are ranks",
                      call.name,
                      id_count,
                      ranks);
      }
      // Shared memory needs no second root: the first id, which names the communicator, serves all.
      return add_init(comm, ids[0], self, options, init_mode::by_config);
    });
  });
}

int ncclCommInitAll(ncclComm** comms, int count, const int* devices) {
  return guarded_call("ncclCommInitAll", nullptr, [&](call_guard& call) {
    if (comms == nullptr || count < 1) {
      return refuse(results::invalid_argument, "{} : invalid device count {}", call.name, count);
    }
    std::vector<int> chosen;
    for (int rank = 0; rank < count; ++rank) {
      const int device = devices == nullptr ? rank : devices[rank];
      if (std::ranges::find(chosen, device) != chosen.end()) {
        return refuse(results::invalid_usage, "{} : device {} is listed twice", call.name, device);
      }
      chosen.push_back(device);
    }
    unique_id id{};
    if (const int code = make_unique_id(id); code != results::success) {
      return code;
    }
    return run_as_group([&] {
      for (int rank = 0; rank < count; ++rank) {
        const arrival self{
            .rank = rank, .world_size = count, .device = chosen[static_cast<std::size_t>(rank)]};
        const int code = add_init(&comms[rank], id, self, nullptr, init_mode::synchronous);
        if (code != results::success) {
          return code;
        }
      }
      return results::success;
    });
  });
}

int ncclCommSplit(ncclComm* comm, int color, int key, ncclComm** child, config* options) {
  return guarded_call("ncclCommSplit", comm, [&](call_guard& call) {
    const int code = run_as_group([&] { return add_split(call, color, key, child, options); });
    return keep_failure(call, hide_progress(code));
  });
}

int ncclCommShrink(ncclComm* comm,
                   int* excluded,
                   int excluded_count,
                   ncclComm** child,
                   config* options,
                   int flags) {
  return guarded_call("ncclCommShrink", comm, [&](call_guard& call) {
    const int code = run_as_group([&] {
      if (call.comm == nullptr || excluded == nullptr || excluded_count < 1) {
        return refuse(results::invalid_argument, "{} : no communicator or no ranks", call.name);
      }
      std::sort(excluded, excluded + excluded_count);  // the caller's array, as NCCL does
      const std::vector<int> ranks(excluded, excluded + excluded_count);
      if (std::ranges::find(ranks, call.comm->rank()) != ranks.end()) {
        return refuse(results::invalid_argument, "{} : an excluded rank must not call", call.name);
      }
      if ((flags & 1) != 0) {  // NCCL_SHRINK_ABORT: what runs is ended first
        static_cast<void>(call.comm->revoke());
        call.comm->wait_for_running();
      }
      return add_shrink(call, ranks, child, options);
    });
    return keep_failure(call, hide_progress(code));
  });
}

}  // namespace spark_comm::host::nccl
