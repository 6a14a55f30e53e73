// SPDX-License-Identifier: AGPL-3.0-only
// From many timings to the few numbers that are printed.
#pragma once

#include <span>
#include <vector>

namespace spark_comm::app {

/// Unit: that of the samples.
struct summary {
  double median = 0;
  double p99 = 0;
};

/// The middle sample (the mean of the two middle ones of an even number), and the smallest sample
/// that at least 99 % of the samples do not exceed. Zeros without samples.
[[nodiscard]] summary summarize(std::vector<double> samples);

/// Iteration by iteration the slowest rank: a collective is over when its last rank is.
/// Shape: one inner vector a rank; cut to the shortest.
[[nodiscard]] std::vector<double> slowest_of(std::span<const std::vector<double>> ranks);

}  // namespace spark_comm::app
