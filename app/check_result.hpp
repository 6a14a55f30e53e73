// SPDX-License-Identifier: AGPL-3.0-only
// From what the ranks found out to one verdict an operation.
#pragma once

#include "rank_report.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm::app {

/// One operation over all ranks. A combination fails when it fails on any rank.
struct operation_verdict {
  std::string operation;
  std::uint64_t passed = 0;
  std::uint64_t failed = 0;
  std::map<std::string, std::uint64_t> not_supported;  ///< How many, by reason.
  std::vector<std::string> failures;                   ///< In words.
  bool ranks_differ = false;  ///< Results that must be equal on all ranks are not.

  [[nodiscard]] bool is_right() const noexcept { return failed == 0 && !ranks_differ; }
};

/// Shape: one report a rank, of the same operation.
[[nodiscard]] operation_verdict combine(const std::vector<checked_report>& ranks);

/// "all_reduce       660 passed, 0 failed, 120 not supported (...)", then a line for each failure.
[[nodiscard]] std::string to_text(const operation_verdict& verdict);

/// Gathers reports until an operation is complete.
class check_collector {
 public:
  explicit check_collector(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  [[nodiscard]] std::optional<operation_verdict> add(const checked_report& report);

  [[nodiscard]] bool is_right() const noexcept { return is_right_; }

  [[nodiscard]] std::size_t complete() const noexcept { return complete_; }

 private:
  std::size_t ranks_;
  std::map<std::string, std::vector<checked_report>> open_;
  std::size_t complete_ = 0;
  bool is_right_ = true;
};

}  // namespace spark_comm::app
