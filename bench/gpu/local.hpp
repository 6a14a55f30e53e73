// SPDX-License-Identifier: AGPL-3.0-only
// The kernels of one rank, against copies of as many bytes: what they take.
#pragma once

#include <spark_comm/kernels/module.hpp>

namespace spark_comm::bench {

/// The fused norm and the sum, against copies of as many bytes in the same run. Prints JSON lines.
void run_local(const kernels::kernel_module& kernels);

}  // namespace spark_comm::bench
