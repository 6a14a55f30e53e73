// SPDX-License-Identifier: AGPL-3.0-only
#include "statistics.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace spark_comm::app {

summary summarize(std::vector<double> samples) {
  if (samples.empty()) {
    return {};
  }
  std::ranges::sort(samples);
  const std::size_t count = samples.size();
  const double median =
      count % 2 == 1 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
  // Nearest rank: the ceiling of 0.99 x count, counted from one.
  const std::size_t rank = (count * 99 + 99) / 100;
  return {.median = median, .p99 = samples[rank - 1]};
}

std::vector<double> slowest_of(std::span<const std::vector<double>> ranks) {
  if (ranks.empty()) {
    return {};
  }
  std::vector<double> slowest = ranks.front();
  for (const std::vector<double>& samples : ranks.subspan(1)) {
    slowest.resize(std::min(slowest.size(), samples.size()));
    for (std::size_t index = 0; index < slowest.size(); ++index) {
      slowest[index] = std::max(slowest[index], samples[index]);
    }
  }
  return slowest;
}

}  // namespace spark_comm::app
