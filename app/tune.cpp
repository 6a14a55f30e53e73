// SPDX-License-Identifier: AGPL-3.0-only
#include "tune.hpp"

#include "bench_json.hpp"
#include "bench_options.hpp"
#include "bench_result.hpp"
#include "exit_code.hpp"
#include "quantity.hpp"
#include "rank_job.hpp"
#include "rank_report.hpp"
#include "tune_rules.hpp"

#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace spark_comm::app {
namespace {

constexpr std::uint64_t smallest_bytes = 1024;
// What the low-latency path takes at most.
constexpr std::uint64_t largest_low_latency = std::uint64_t{64} << 10U;

bench_options bench_of(const tune_options& options, path_kind path) {
  bench_options bench;
  bench.job = options.job;
  bench.path = path;
  bench.min_bytes = smallest_bytes;
  bench.max_bytes = path == path_kind::low_latency
                        ? std::min(options.max_bytes, largest_low_latency)
                        : options.max_bytes;
  bench.dtype = data_type::bfloat16;
  // Decoding replays graphs.
  bench.mode = timing_mode::graph;
  return bench;
}

// The command that makes a process a rank of that job.
std::vector<std::string> rank_command(const bench_options& bench) {
  std::vector<std::string> words = {own_program(),
                                    "rank",
                                    "bench",
                                    "all_reduce",
                                    "--path",
                                    std::string{name_of(*bench.path)},
                                    "--mode",
                                    std::string{name_of(bench.mode)},
                                    "--dtype",
                                    std::string{name_of(bench.dtype)},
                                    "--min",
                                    fmt::to_string(bench.min_bytes),
                                    "--max",
                                    fmt::to_string(*bench.max_bytes),
                                    "--runtime",
                                    std::string{name_of(bench.job.runtime)},
                                    "--ranks",
                                    fmt::to_string(bench.job.ranks)};
  if (!bench.job.nccl_library.empty()) {
    words.insert(words.end(), {"--nccl", bench.job.nccl_library});
  }
  if (bench.job.share_gpu) {
    words.emplace_back("--share-gpu");
  }
  return words;
}

/// What was measured, and where.
struct measurement {
  std::vector<path_time> times;
  runtime_kind runtime = runtime_kind::host;
};

void measure(const bench_options& bench, measurement& into) {
  bench_collector results{bench};
  run_rank_job(
      bench.job,
      rank_command(bench),
      [&](int /*rank*/, const rank_report& report) {
        if (const auto* ready = std::get_if<ready_report>(&report)) {
          into.runtime = ready->runtime == name_of(runtime_kind::nvidia) ? runtime_kind::nvidia
                                                                         : runtime_kind::host;
        } else if (const auto* measured = std::get_if<measured_report>(&report)) {
          static_cast<void>(results.add(*measured));
        }
      },
      [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  for (const row_result& row : results.rows()) {
    if (!row.is_right()) {
      throw failure(exit_code::wrong,
                    fmt::format("sums of {} by {} are wrong; no table is written",
                                size_text(row.size_bytes),
                                name_of(*bench.path)));
    }
    const double median = row.out_of_place.microseconds.median;
    into.times.push_back({*bench.path, row.size_bytes, median});
    fmt::print(
        "{:>12} {:>10} {:>10.2f} us\n", name_of(*bench.path), size_text(row.size_bytes), median);
  }
}

}  // namespace

void validate(const tune_options& options) {
  validate(options.job);
  constexpr std::uint64_t largest = std::uint64_t{256} << 20U;
  if (options.job.ranks < 2) {
    throw usage_failure("--ranks 1: there is nothing to choose for a single rank");
  }
  if (options.max_bytes < smallest_bytes || options.max_bytes > largest) {
    throw usage_failure(fmt::format("--max {}: accepted are {} to {}",
                                    size_text(options.max_bytes),
                                    size_text(smallest_bytes),
                                    size_text(largest)));
  }
}

exit_code run_tune(const tune_options& options) {
  measurement seen;
  for (const path_kind path : {path_kind::nccl,
                               path_kind::exchange,
                               path_kind::low_latency,
                               path_kind::one_shot,
                               path_kind::two_shot}) {
    try {
      measure(bench_of(options, path), seen);
    } catch (const failure& refused) {
      // A path that is not there is no candidate; NCCL always is.
      if (refused.code() != exit_code::not_available || path == path_kind::nccl) {
        throw;
      }
      fmt::print("{:>12} not available here\n", name_of(path));
    }
  }
  const path_table table = tuned_table(seen.times, options.job.ranks, seen.runtime);
  write_file(options.table_file, table.text());
  fmt::print("\n{}\nwritten to {}; use it with SPARK_COMM_PATH_TABLE, on every rank\n",
             table.text(),
             options.table_file);
  return exit_code::ok;
}

}  // namespace spark_comm::app
