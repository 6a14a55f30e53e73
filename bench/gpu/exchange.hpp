// SPDX-License-Identifier: AGPL-3.0-only
// All-reduces inside one kernel between two processes on one device: what they take.
#pragma once

#include "pair_channel.hpp"

#include <spark_comm/kernels/module.hpp>

namespace spark_comm::bench {

/// All-reduces inside one kernel between this process and its pair, whose segments map into each
/// other through CUDA IPC. Rank 0 prints JSON lines. Returns whether every result was right.
[[nodiscard]] bool run_exchange(const kernels::kernel_module& kernels, const pair_channel& pair);

}  // namespace spark_comm::bench
