// SPDX-License-Identifier: AGPL-3.0-only
// The verbs and their options: what is accepted, and what is said when it is not.
#pragma once

#include "bench_options.hpp"
#include "demo.hpp"
#include "doctor/doctor.hpp"
#include "info.hpp"
#include "launch.hpp"
#include "trace.hpp"
#include "tune.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace spark_comm::app {

/// Text to print, asked for with `help`, `--help` or `--version`.
struct show_text {
  std::string text;
};

/// `bench`, `check` or `info` with checked options.
struct bench_request {
  bench_options options;
};

struct check_request {
  job_options options;
};

struct info_request {
  info_options options;
};

struct launch_request {
  launch_options options;
};

struct trace_request {
  trace_options options;
};

struct demo_request {
  demo_options options;
};

struct doctor_request {
  doctor_options options;
};

struct tune_request {
  tune_options options;
};

using request = std::variant<show_text,
                             bench_request,
                             check_request,
                             info_request,
                             launch_request,
                             trace_request,
                             demo_request,
                             doctor_request,
                             tune_request>;

/// What the arguments (without the program's name) ask for.
/// Throws: failure (usage), one line naming what is accepted.
[[nodiscard]] request parse_command_line(const std::vector<std::string>& arguments);

}  // namespace spark_comm::app
