// SPDX-License-Identifier: AGPL-3.0-only
// What every rank process of `bench` does: join, check, time, report.
#pragma once

#include "bench_options.hpp"

namespace spark_comm::app {

/// Throws: failure; spark_comm::error.
void run_bench_rank(const bench_options& options);

}  // namespace spark_comm::app
