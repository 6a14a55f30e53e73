// SPDX-License-Identifier: AGPL-3.0-only
#include "check_result.hpp"

#include "rank_report.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm::app {

operation_verdict combine(const std::vector<checked_report>& ranks) {
  const checked_report& first = ranks.front();
  operation_verdict verdict{.operation = first.operation,
                            .passed = first.passed,
                            .failed = 0,
                            .not_supported = first.not_supported,
                            .failures = {},
                            .ranks_differ = false};
  for (const checked_report& rank : ranks) {
    verdict.passed = std::min(verdict.passed, rank.passed);
    verdict.failed = std::max(verdict.failed, rank.failed);
    verdict.failures.insert(verdict.failures.end(), rank.failures.begin(), rank.failures.end());
    verdict.ranks_differ = verdict.ranks_differ || rank.digest != first.digest;
  }
  return verdict;
}

std::string to_text(const operation_verdict& verdict) {
  std::uint64_t unsupported = 0;
  std::string reasons;
  for (const auto& [reason, count] : verdict.not_supported) {
    unsupported += count;
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", reason);
  }
  std::string text = fmt::format("{:<15} {:>5} passed, {} failed, {} not supported{}\n",
                                 verdict.operation,
                                 verdict.passed,
                                 verdict.failed,
                                 unsupported,
                                 reasons.empty() ? "" : " (" + reasons + ")");
  for (const std::string& one : verdict.failures) {
    text += fmt::format("  wrong: {}\n", one);
  }
  if (verdict.ranks_differ) {
    text += "  wrong: results that must be equal on all ranks differ between them\n";
  }
  return text;
}

std::optional<operation_verdict> check_collector::add(const checked_report& report) {
  std::vector<checked_report>& same = open_[report.operation];
  same.push_back(report);
  if (same.size() < ranks_) {
    return std::nullopt;
  }
  operation_verdict verdict = combine(same);
  open_.erase(report.operation);
  ++complete_;
  is_right_ = is_right_ && verdict.is_right();
  return verdict;
}

}  // namespace spark_comm::app
