// SPDX-License-Identifier: AGPL-3.0-only
// The host runtime with a few calls of NCCL watched or changed, for one runtime of a process.
#pragma once

#include "support/world.hpp"

#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/nccl/library.hpp>

#include <atomic>
#include <functional>
#include <utility>

namespace spark_comm::test_support {

/// What a test does with the calls that make a communicator. The table's functions have no state,
/// so there is one of these a process.
struct watched_calls {
  nccl::api real;
  int version = 0;  ///< To be told in place of the real one, unless 0.
  std::atomic<int> ids{0};
  std::atomic<int> inits{0};
  std::function<void(nccl::abi::unique_id& id)> on_id;    ///< May change what the head hands out.
  std::function<void(nccl::abi::unique_id& id)> on_init;  ///< May change what NCCL is given.

  [[nodiscard]] static watched_calls& here() {
    static watched_calls calls;
    return calls;
  }
};

/// Loads it. Not before a fork, as `host_runtime`.
[[nodiscard]] inline runtime watched_runtime(diagnostics log = {}) {
  const runtime plain = host_runtime(log);
  watched_calls& calls = watched_calls::here();
  calls.real = plain.library().table();
  nccl::api table = calls.real;
  table.ncclGetVersion = [](int* version) {
    const watched_calls& all = watched_calls::here();
    const auto result = all.real.ncclGetVersion(version);
    *version = all.version != 0 ? all.version : *version;
    return result;
  };
  table.ncclGetUniqueId = [](nccl::abi::unique_id* id) {
    watched_calls& all = watched_calls::here();
    ++all.ids;
    const auto result = all.real.ncclGetUniqueId(id);
    if (all.on_id) {
      all.on_id(*id);
    }
    return result;
  };
  table.ncclCommInitRankConfig = [](nccl::abi::comm* comm,
                                    int size,
                                    nccl::abi::unique_id id,
                                    int rank,
                                    nccl::abi::config* config) {
    watched_calls& all = watched_calls::here();
    ++all.inits;
    if (all.on_init) {
      all.on_init(id);
    }
    return all.real.ncclCommInitRankConfig(comm, size, id, rank, config);
  };
  return runtime::from_parts(
      runtime_kind::host, plain.driver(), nccl::library::from_table(table, std::move(log)));
}

}  // namespace spark_comm::test_support
