// SPDX-License-Identifier: AGPL-3.0-only
// `spark-comm tune`: measures all_reduce on every path of this machine and writes the table of
// paths that follows.
#pragma once

#include "bench_options.hpp"
#include "exit_code.hpp"

#include <cstdint>
#include <string>

namespace spark_comm::app {

struct tune_options {
  job_options job;
  std::string table_file = "spark-comm-paths.txt";
  std::uint64_t max_bytes = std::uint64_t{1} << 20U;  ///< Largest message that is measured.
};

/// Throws: failure (usage) naming the option, its value and what is accepted.
void validate(const tune_options& options);

[[nodiscard]] exit_code run_tune(const tune_options& options);

}  // namespace spark_comm::app
