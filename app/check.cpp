// SPDX-License-Identifier: AGPL-3.0-only
#include "check.hpp"

#include "bench.hpp"
#include "bench_options.hpp"
#include "build_info.hpp"
#include "check_result.hpp"
#include "exit_code.hpp"
#include "invocation.hpp"
#include "machine.hpp"
#include "operation.hpp"
#include "rank_job.hpp"
#include "rank_report.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string>
#include <variant>

namespace spark_comm::app {
namespace {

void print(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

std::string header(const ready_report& ready) {
  return fmt::format(
      "# spark-comm {} ({}), check: every operation, type, reduction, root, odd size, in place and "
      "out of place\n"
      "# machine  {}\n# runtime  {}\n# ranks    {}\n",
      build_version(),
      build_commit(),
      to_text(this_machine()),
      ready.description,
      ready.world_size);
}

}  // namespace

exit_code run_check(const job_options& options, const invocation& how) {
  check_collector results{options.ranks};
  const auto hear = [&](int /*rank*/, const rank_report& report) {
    if (const auto* ready = std::get_if<ready_report>(&report)) {
      require_world(options.ranks, ready->world_size);
      if (ready->rank == 0) {
        print(header(*ready));
      }
    } else if (const auto* checked = std::get_if<checked_report>(&report)) {
      if (const std::optional<operation_verdict> verdict = results.add(*checked)) {
        print(to_text(*verdict));
      }
    }
  };
  run_rank_job(options, how.rank_command, hear, [](const std::string& line) {
    fmt::print(stderr, "{}\n", line);
  });
  if (results.complete() != std::size(all_operations)) {
    throw failure(exit_code::failed,
                  fmt::format("the ranks ended early: {} of {} operations checked",
                              results.complete(),
                              std::size(all_operations)));
  }
  print(fmt::format("result: {}\n", results.is_right() ? "ok" : "wrong"));
  return results.is_right() ? exit_code::ok : exit_code::wrong;
}

}  // namespace spark_comm::app
