// SPDX-License-Identifier: AGPL-3.0-only
// `check`: whether every operation gives the right elements, in every combination.
#pragma once

#include "bench_options.hpp"
#include "exit_code.hpp"
#include "invocation.hpp"

namespace spark_comm::app {

/// Starts the ranks and prints a line for each operation.
/// Returns `wrong` when a combination failed. Throws: failure.
[[nodiscard]] exit_code run_check(const job_options& options, const invocation& how);

}  // namespace spark_comm::app
