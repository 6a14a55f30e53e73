// SPDX-License-Identifier: AGPL-3.0-only
// Both native tables on one script: what unit tests of the layers above the seam run on.
#pragma once

#include "support/call_script.hpp"
#include "support/scripted_cuda.hpp"
#include "support/scripted_nccl.hpp"

namespace spark_comm::testing {

/// One a test, first among its objects: whatever holds a handle has to go before it.
struct scripted_tables {
  call_script script;
  scripted_cuda cuda{script};
  scripted_nccl nccl{script};
};

}  // namespace spark_comm::testing
