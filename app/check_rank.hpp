// SPDX-License-Identifier: AGPL-3.0-only
// What every rank process of `check` does: each operation in every combination, element by element.
#pragma once

#include "bench_options.hpp"

namespace spark_comm::app {

/// Throws: failure; spark_comm::error.
void run_check_rank(const job_options& options);

}  // namespace spark_comm::app
