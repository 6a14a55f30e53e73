// SPDX-License-Identifier: AGPL-3.0-only
#include "bench_result.hpp"

#include "bandwidth.hpp"
#include "bench_options.hpp"
#include "exit_code.hpp"
#include "operation.hpp"
#include "rank_report.hpp"
#include "statistics.hpp"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <vector>

namespace spark_comm::app {

placement_result combine(operation what, const std::vector<measured_report>& ranks) {
  placement_result result;
  std::vector<std::vector<double>> samples;
  for (const measured_report& report : ranks) {
    result.wrong += report.wrong;
    samples.push_back(report.microseconds);
  }
  if (result.is_right()) {
    result.microseconds = summarize(slowest_of(samples));
    result.speed = bandwidth_of(
        what, static_cast<int>(ranks.size()), ranks.front().size_bytes, result.microseconds.median);
  }
  return result;
}

bench_collector::bench_collector(const bench_options& options)
    : what_(options.what), ranks_(static_cast<std::size_t>(options.job.ranks)) {}

std::optional<row_result> bench_collector::add(const measured_report& report) {
  parts& row = open_[report.row];
  std::vector<measured_report>& same = report.in_place ? row.in_place : row.out_of_place;
  if (!same.empty() && same.front().size_bytes != report.size_bytes) {
    throw failure(exit_code::failed,
                  fmt::format("ranks disagree on row {}: {} and {} bytes",
                              report.row,
                              same.front().size_bytes,
                              report.size_bytes));
  }
  same.push_back(report);
  const bool has_in_place = traits_of(what_).has_in_place;
  if (row.out_of_place.size() < ranks_ || (has_in_place && row.in_place.size() < ranks_)) {
    return std::nullopt;
  }
  row_result done{.size_bytes = report.size_bytes,
                  .count = report.count,
                  .out_of_place = combine(what_, row.out_of_place),
                  .in_place = std::nullopt};
  if (has_in_place) {
    done.in_place = combine(what_, row.in_place);
  }
  open_.erase(report.row);
  rows_.push_back(done);
  return done;
}

bool bench_collector::is_right() const noexcept {
  return std::ranges::all_of(rows_, [](const row_result& row) { return row.is_right(); });
}

std::optional<double> bench_collector::best_bus() const noexcept {
  std::optional<double> best;
  const auto consider = [&](const placement_result& result) {
    if (result.is_right() && result.speed.bus) {
      best = std::max(best.value_or(0), *result.speed.bus);
    }
  };
  for (const row_result& row : rows_) {
    consider(row.out_of_place);
    if (row.in_place) {
      consider(*row.in_place);
    }
  }
  return best;
}

}  // namespace spark_comm::app
