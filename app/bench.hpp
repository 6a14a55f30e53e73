// SPDX-License-Identifier: AGPL-3.0-only
// `bench`: how fast an operation is, after it was shown to be right.
#pragma once

#include "bench_options.hpp"
#include "exit_code.hpp"
#include "invocation.hpp"

namespace spark_comm::app {

/// Starts the ranks, gathers what they measure, and prints the one table.
/// Returns `wrong` when an element was wrong. Throws: failure.
[[nodiscard]] exit_code run_bench(const bench_options& options, const invocation& how);

/// Throws: failure (failed) when a rank joined another world than the one that was asked for.
void require_world(int expected_ranks, int joined_ranks);

}  // namespace spark_comm::app
