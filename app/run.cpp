// SPDX-License-Identifier: AGPL-3.0-only
#include "run.hpp"

#include "bench.hpp"
#include "bench_rank.hpp"
#include "check.hpp"
#include "check_rank.hpp"
#include "command_line.hpp"
#include "demo.hpp"
#include "doctor/doctor.hpp"
#include "exit_code.hpp"
#include "info.hpp"
#include "invocation.hpp"
#include "launch.hpp"
#include "rank_job.hpp"
#include "rank_report.hpp"
#include "rank_session.hpp"
#include "trace.hpp"
#include "tune.hpp"

#include <spark_comm/core/error.hpp>

#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace spark_comm::app {
namespace {

/// The hidden first argument that makes this process a rank of the job that the rest describes.
constexpr const char* rank_verb = "rank";

/// The same for the ranks of a demonstration; its one argument says what goes wrong.
constexpr const char* demo_rank_verb = "demo-rank";

using line_teller = std::function<void(exit_code code, const std::string& text)>;

/// What `work` returns, or what its exception means, after `tell` was told.
template <typename Work>
exit_code guarded(Work work, const line_teller& tell) {
  try {
    return work();
  } catch (const failure& caught) {
    tell(caught.code(), caught.what());
    return caught.code();
  } catch (const error& caught) {
    const exit_code code = exit_code_for(caught.kind());
    tell(code, caught.what());
    return code;
  } catch (const std::exception& caught) {
    tell(exit_code::failed, caught.what());
    return exit_code::failed;
  }
}

/// One visitor a request; in a rank process bench and check do a rank's part.
struct doer {
  const std::vector<std::string>& arguments;

  exit_code operator()(const show_text& asked) const {
    fmt::print("{}", asked.text);
    return exit_code::ok;
  }

  exit_code operator()(const bench_request& asked) const { return run_bench(asked.options, how()); }

  exit_code operator()(const check_request& asked) const { return run_check(asked.options, how()); }

  exit_code operator()(const info_request& asked) const { return run_info(asked.options); }

  exit_code operator()(const doctor_request& asked) const { return run_doctor(asked.options); }

  // The program's own exit code is passed on as it is, known to us or not.
  exit_code operator()(const launch_request& asked) const {
    return static_cast<exit_code>(run_launch(asked.options));
  }

  exit_code operator()(const trace_request& asked) const { return run_trace(asked.options); }

  exit_code operator()(const tune_request& asked) const { return run_tune(asked.options); }

  exit_code operator()(const demo_request& asked) const { return run_demo(asked.options, how()); }

  [[nodiscard]] invocation how() const {
    invocation called{.command_line = {"spark-comm"}, .rank_command = {own_program(), rank_verb}};
    called.command_line.insert(called.command_line.end(), arguments.begin(), arguments.end());
    called.rank_command.insert(called.rank_command.end(), arguments.begin(), arguments.end());
    return called;
  }
};

struct rank_doer {
  exit_code operator()(const bench_request& asked) const {
    run_bench_rank(asked.options);
    return exit_code::ok;
  }

  exit_code operator()(const check_request& asked) const {
    run_check_rank(asked.options);
    return exit_code::ok;
  }

  exit_code operator()(const auto& /*asked*/) const {
    throw usage_failure("rank: only bench and check have ranks");
  }
};

exit_code run_rank(const std::vector<std::string>& arguments) {
  require_started_as_rank();
  return guarded([&] { return std::visit(rank_doer{}, parse_command_line(arguments)); },
                 [](exit_code code, const std::string& text) {
                   send_report(failed_report{.exit_code = static_cast<int>(code), .text = text});
                 });
}

}  // namespace

exit_code run(const std::vector<std::string>& arguments) noexcept {
  return guarded(
      [&] {
        if (!arguments.empty() && arguments.front() == rank_verb) {
          return run_rank({arguments.begin() + 1, arguments.end()});
        }
        if (arguments.size() == 2 && arguments.front() == demo_rank_verb) {
          const auto what = parse_mishap(arguments.back());
          if (what) {
            return run_demo_rank(*what);
          }
        }
        return std::visit(doer{arguments}, parse_command_line(arguments));
      },
      [](exit_code, const std::string& text) { fmt::print(stderr, "spark-comm: {}\n", text); });
}

}  // namespace spark_comm::app
