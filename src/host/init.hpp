// SPDX-License-Identifier: AGPL-3.0-only
// How communicators come to be: from a unique id, or out of another communicator.
#pragma once

#include "call_guard.hpp"
#include "nccl_abi.hpp"

#include <vector>

namespace spark_comm::host::nccl {

/// How a caller waits for an init.
enum class init_mode : std::uint8_t {
  by_config,    ///< As the config says.
  synchronous,  ///< ncclCommInitRank, whatever the environment makes of the config.
};

/// Checks, publishes the handle, and adds the init to the open group.
[[nodiscard]] int add_init(
    ncclComm** out, const unique_id& id, arrival self, const config* options, init_mode mode);

/// Adds a split of the call's communicator to the open group.
[[nodiscard]] int add_split(
    const call_guard& call, int color, int key, ncclComm** out, const config* options);

/// Adds the making of a communicator without the excluded ranks to the open group.
[[nodiscard]] int add_shrink(const call_guard& call,
                             std::vector<int> excluded,
                             ncclComm** out,
                             const config* options);

}  // namespace spark_comm::host::nccl
