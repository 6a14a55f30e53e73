// SPDX-License-Identifier: AGPL-3.0-only
#include "bench_table.hpp"

#include "bandwidth.hpp"
#include "bench_options.hpp"
#include "bench_result.hpp"
#include "build_info.hpp"
#include "machine.hpp"
#include "operation.hpp"
#include "rank_report.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>

namespace spark_comm::app {
namespace {

constexpr std::string_view columns = " {:>10} {:>10} {:>8} {:>8} {:>8}";

std::string cells(std::string_view median,
                  std::string_view p99,
                  std::string_view algorithm,
                  std::string_view bus,
                  std::string_view wrong) {
  return fmt::format(columns, median, p99, algorithm, bus, wrong);
}

/// Three digits that count: small sizes do not show as 0.00.
std::string bandwidth_text(double value) {
  return value < 10 ? fmt::format("{:.3f}", value) : fmt::format("{:.2f}", value);
}

std::string placement_cells(const std::optional<placement_result>& result) {
  if (!result) {
    return cells("n/a", "n/a", "n/a", "n/a", "n/a");
  }
  if (!result->is_right()) {
    return cells("wrong", "wrong", "wrong", "wrong", fmt::to_string(result->wrong));
  }
  return cells(fmt::format("{:.2f}", result->microseconds.median),
               fmt::format("{:.2f}", result->microseconds.p99),
               bandwidth_text(result->speed.algorithm),
               result->speed.bus ? bandwidth_text(*result->speed.bus) : "n/a",
               "0");
}

std::string timing_text(const bench_options& options) {
  switch (options.mode) {
    case timing_mode::synchronized:
      return fmt::format(
          "synchronized: each operation from its call until its stream is drained, slowest rank, "
          "over {} iterations after {} to warm up",
          options.iterations,
          options.warmup);
    case timing_mode::pipelined:
    case timing_mode::graph:
      return fmt::format(
          "{}: {} batches of {} operations back to back, a batch's time over its operations, "
          "slowest rank, after {} operations to warm up",
          name_of(options.mode),
          pipelined_batches,
          options.iterations,
          options.warmup);
  }
  return {};
}

std::string left_cells(std::string_view size,
                       std::string_view count,
                       std::string_view type,
                       std::string_view redop,
                       std::string_view root) {
  return fmt::format("{:>14} {:>12} {:>9} {:>6} {:>5}", size, count, type, redop, root);
}

}  // namespace

std::string table_header(const bench_options& options,
                         const machine_info& machine,
                         const ready_report& job) {
  std::string text = fmt::format("# spark-comm {} ({}), bench {}\n",
                                 build_version(),
                                 build_commit(),
                                 traits_of(options.what).name);
  const auto line = [&](std::string_view name, std::string_view value) {
    text += fmt::format("# {:<8} {}\n", name, value);
  };
  line("machine", to_text(machine));
  line("runtime", job.description);
  line("device", job.device);
  line("versions", fmt::format("driver {}, NCCL {}", job.driver_version, job.nccl_version));
  line(
      "ranks",
      fmt::format("{} process{} of this machine", job.world_size, job.world_size == 1 ? "" : "es"));
  line("timing", timing_text(options));
  line("units",
       "size in bytes (B) of a rank's larger buffer, count in elements of a block, time in "
       "microseconds (us), bandwidth in GB/s (10^9 bytes a second)");
  text += "#\n";
  text += fmt::format("#{:>49} {:>48} {:>48}\n", "", "out of place", "in place");
  text += "#" + left_cells("size", "count", "type", "redop", "root").substr(1);
  const std::string names = cells("median", "p99", "algbw", "busbw", "#wrong");
  text += names + names + "\n";
  text += "#" + left_cells("(B)", "(elements)", "", "", "").substr(1);
  const std::string units = cells("(us)", "(us)", "(GB/s)", "(GB/s)", "");
  text += units + units;
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string table_row(const bench_options& options, const row_result& row) {
  const operation_traits& traits = traits_of(options.what);
  return left_cells(fmt::to_string(row.size_bytes),
                    fmt::to_string(row.count),
                    name_of(options.dtype),
                    traits.reduces ? name_of(options.op) : "none",
                    traits.has_root ? fmt::to_string(options.root) : "-1") +
         placement_cells(row.out_of_place) + placement_cells(row.in_place) + "\n";
}

std::string table_footer(const bench_options& options, const bench_collector& results) {
  std::string text;
  const std::optional<double> best = results.best_bus();
  if (best && options.link_gigabits) {
    text += "# link     " + judge_link(*best, *options.link_gigabits).text + "\n";
  }
  std::uint64_t wrong_rows = 0;
  for (const row_result& row : results.rows()) {
    wrong_rows += row.is_right() ? 0U : 1U;
  }
  text += wrong_rows == 0 ? fmt::format("# result   ok: every element of every rank was right\n")
                          : fmt::format("# result   wrong: {} of {} sizes had wrong elements\n",
                                        wrong_rows,
                                        results.rows().size());
  return text;
}

}  // namespace spark_comm::app
