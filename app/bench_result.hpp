// SPDX-License-Identifier: AGPL-3.0-only
// From the ranks' measurements to the rows of the one table.
#pragma once

#include "bandwidth.hpp"
#include "bench_options.hpp"
#include "rank_report.hpp"
#include "statistics.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace spark_comm::app {

/// One size, in place or out of place, over all ranks.
struct placement_result {
  std::uint64_t wrong = 0;  ///< Elements, summed over the ranks; when not 0 nothing else counts.
  summary microseconds;     ///< Over the iterations, of the slowest rank in each.
  bandwidth speed;          ///< At the median.

  [[nodiscard]] bool is_right() const noexcept { return wrong == 0; }
};

/// A row of the table.
struct row_result {
  std::uint64_t size_bytes = 0;
  std::uint64_t count = 0;
  placement_result out_of_place;
  std::optional<placement_result> in_place;  ///< Empty for operations that cannot run in place.

  [[nodiscard]] bool is_right() const noexcept {
    return out_of_place.is_right() && (!in_place || in_place->is_right());
  }
};

/// Combines what the ranks measured for one size.
/// Shape: one report a rank, all of the same row.
[[nodiscard]] placement_result combine(operation what, const std::vector<measured_report>& ranks);

/// Gathers reports until a row is complete.
class bench_collector {
 public:
  explicit bench_collector(const bench_options& options);

  /// The row that this report completes, if it does.
  /// Throws: failure when ranks disagree on what the row is.
  [[nodiscard]] std::optional<row_result> add(const measured_report& report);

  [[nodiscard]] const std::vector<row_result>& rows() const noexcept { return rows_; }

  [[nodiscard]] bool is_right() const noexcept;

  /// The highest bus bandwidth of right results; empty at world 1.
  [[nodiscard]] std::optional<double> best_bus() const noexcept;

 private:
  struct parts {
    std::vector<measured_report> out_of_place;
    std::vector<measured_report> in_place;
  };

  operation what_;
  std::size_t ranks_;
  std::map<std::size_t, parts> open_;
  std::vector<row_result> rows_;
};

}  // namespace spark_comm::app
