// SPDX-License-Identifier: AGPL-3.0-only
// Fuzz target of the fault script: any text is rules that can come true, or one refusal that names
// a place inside it.
#include "fuzz/fuzz_target.hpp"
#include "host/fault_script.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::host {
namespace {

using fuzz::require;

void check_rule(const fault_rule& rule) {
  require(rule.rank >= any_rank);
  require(rule.event == fault_event::operations || rule.occasion == fault_occasion::every ||
          rule.count >= 1);
  require(rule.time >= std::chrono::nanoseconds::zero() && rule.time <= std::chrono::hours{24});
  require(rule.event == fault_event::operations ||
          std::ranges::any_of(fault_calls(),
                              [&](std::string_view call) { return matches(rule.call, call); }));
}

void check_problem(const script_problem& problem, std::string_view text) {
  const auto lines = 1 + static_cast<std::size_t>(std::ranges::count(text, '\n'));
  require(problem.line >= 1 && problem.line <= lines);
  require(problem.column >= 1 && problem.column <= text.size() + 1);
  require(!describe(problem).empty());
}

}  // namespace
}  // namespace spark_comm::host

std::vector<std::string> fuzz_seeds() {
  return {
      "rank 1 call ncclAllReduce nth 3 delay 2s",
      "rank * call ncclCommInitRankConfig in_progress 1000 then 2",
      "rank 0 after 4 ops async_error 6",
      "rank 1 abort hang; rank 1 freeze 3s",
      "# why\nrank 0 call ncclCommRegister nth 2 return 3\nrank 2 call cu* from 5 kill",
      "rank 1 call ncclAllReduce nth 5 corrupt;rank 0 call * stop",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spark_comm::host;
  const std::string text{data, data + size};
  const parsed_script script = parse_fault_script(text);
  if (script.problem) {
    spark_comm::fuzz::require(script.rules.empty());
    check_problem(*script.problem, text);
  }
  std::ranges::for_each(script.rules, check_rule);
  return 0;
}
