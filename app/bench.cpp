// SPDX-License-Identifier: AGPL-3.0-only
#include "bench.hpp"

#include "bench_json.hpp"
#include "bench_options.hpp"
#include "bench_result.hpp"
#include "bench_table.hpp"
#include "exit_code.hpp"
#include "invocation.hpp"
#include "machine.hpp"
#include "mps.hpp"
#include "progress_bar.hpp"
#include "quantity.hpp"
#include "rank_job.hpp"
#include "rank_report.hpp"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <variant>

namespace spark_comm::app {
namespace {

std::string read_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): one thread
  return value == nullptr ? std::string{} : std::string{value};
}

/// Prints as results come in.
class bench_printer {
 public:
  bench_printer(const bench_options& options, const invocation& how)
      : options_(options),
        results_(options),
        record_{.command_line = how.command_line,
                .date = utc_now(),
                .machine = this_machine(),
                .job = {}} {}

  void hear(const rank_report& report) {
    if (const auto* ready = std::get_if<ready_report>(&report)) {
      on_ready(*ready);
    } else if (const auto* measured = std::get_if<measured_report>(&report)) {
      on_measured(*measured);
    }
  }

  void say(const std::string& line) {
    bar_.hide();
    fmt::print(stderr, "{}\n", line);
  }

  [[nodiscard]] exit_code finish() {
    bar_.hide();
    if (ready_ranks_ != options_.job.ranks || results_.rows().size() != record_.job.rows) {
      throw failure(exit_code::failed,
                    fmt::format("the ranks ended early: {} of {} joined, {} of {} sizes measured",
                                ready_ranks_,
                                options_.job.ranks,
                                results_.rows().size(),
                                record_.job.rows));
    }
    print(table_footer(options_, results_));
    if (!options_.json_file.empty()) {
      write_file(options_.json_file, bench_json(options_, record_, results_));
    }
    return results_.is_right() ? exit_code::ok : exit_code::wrong;
  }

 private:
  void on_ready(const ready_report& ready) {
    require_world(options_.job.ranks, ready.world_size);
    ++ready_ranks_;
    if (ready.rank != 0) {
      return;
    }
    record_.job = ready;
    print(table_header(options_, record_.machine, ready));
    if (options_.job.share_gpu && ready.runtime == "nvidia") {
      const std::string pipe = mps_control_pipe(read_variable);
      if (!is_mps_running(pipe)) {
        print("# warning  " + mps_advice(pipe) + "\n");
      }
    }
    bar_.show(0, ready.rows, "");
  }

  void on_measured(const measured_report& measured) {
    if (const std::optional<row_result> row = results_.add(measured)) {
      bar_.hide();
      print(table_row(options_, *row));
      bar_.show(results_.rows().size(), record_.job.rows, size_text(row->size_bytes));
    }
  }

  static void print(const std::string& text) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }

  const bench_options& options_;
  bench_collector results_;
  bench_record record_;
  progress_bar bar_;
  int ready_ranks_ = 0;
};

}  // namespace

void require_world(int expected_ranks, int joined_ranks) {
  if (expected_ranks != joined_ranks) {
    throw failure(exit_code::failed,
                  fmt::format("expected {} ranks, have {}: the processes did not form one world",
                              expected_ranks,
                              joined_ranks));
  }
}

exit_code run_bench(const bench_options& options, const invocation& how) {
  bench_printer printer{options, how};
  run_rank_job(
      options.job,
      how.rank_command,
      [&](int /*rank*/, const rank_report& report) { printer.hear(report); },
      [&](const std::string& line) { printer.say(line); });
  return printer.finish();
}

}  // namespace spark_comm::app
