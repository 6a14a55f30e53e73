// SPDX-License-Identifier: AGPL-3.0-only
#include "trace.hpp"

#include "exit_code.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/supervise/flight_entry.hpp>
#include <spark_comm/supervise/flight_reader.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace spark_comm::app {
namespace {

std::string after(std::int64_t submitted_ns, const std::optional<std::int64_t>& at_ns) {
  return at_ns ? fmt::format("{:.1f}", static_cast<double>(*at_ns - submitted_ns) / 1e3) : "-";
}

std::string row(const flight_log& log, const flight_entry& entry) {
  return fmt::format("{:>6}  {:<64}{:>14.3f}{:>14}{:>14}  {}\n",
                     log.who.rank,
                     describe(entry.record),
                     static_cast<double>(entry.submitted_ns - log.steady_base_ns) / 1e6,
                     after(entry.submitted_ns, entry.started_ns),
                     after(entry.submitted_ns, entry.finished_ns),
                     name_of(entry.stage));
}

std::vector<flight_log> read_all(const std::string& directory) {
  std::error_code problem;
  const std::filesystem::directory_iterator folder{directory, problem};
  if (problem) {
    throw failure(exit_code::failed,
                  fmt::format("trace: cannot read {}: {}", directory, problem.message()));
  }
  std::vector<std::string> paths;
  for (const auto& file : folder) {
    if (file.path().extension() == ".flight") {
      paths.push_back(file.path().string());
    }
  }
  if (paths.empty()) {
    throw failure(exit_code::not_available,
                  fmt::format("trace: no .flight file in {}; ranks write them where "
                              "SPARK_COMM_FLIGHT_DIR says",
                              directory));
  }
  std::ranges::sort(paths);
  std::vector<flight_log> logs;
  for (const std::string& path : paths) {
    logs.push_back(read_flight_record(path));
  }
  return logs;
}

void write_perfetto(const std::string& path, const std::vector<flight_trace>& traces) {
  for (std::size_t i = 0; i < traces.size(); ++i) {
    // Each communicator and generation is a trace of its own: the second goes to FILE.2.
    const std::string name = i == 0 ? path : fmt::format("{}.{}", path, i + 1);
    std::ofstream file{name, std::ios::binary};
    file << to_chrome_trace(traces[i]);
    if (!file.flush()) {
      throw failure(exit_code::failed, fmt::format("trace: cannot write {}", name));
    }
  }
}

}  // namespace

std::string trace_text(const flight_trace& trace, std::size_t last) {
  std::string text = fmt::format("communicator '{}', generation {}, {} ranks\n",
                                 trace.name,
                                 trace.generation,
                                 trace.world_size);
  for (const std::string& finding : trace.findings) {
    text += fmt::format("  {}\n", finding);
  }
  if (last == 0) {
    return text;
  }
  text += fmt::format("{:>6}  {:<64}{:>14}{:>14}{:>14}  {}\n",
                      "rank",
                      "operation",
                      "queued (ms)",
                      "started (us)",
                      "ended (us)",
                      "state");
  for (const flight_log& log : trace.logs) {
    const std::size_t shown = std::min(last, log.entries.size());
    for (std::size_t i = log.entries.size() - shown; i < log.entries.size(); ++i) {
      text += row(log, log.entries[i]);
    }
  }
  return text;
}

exit_code run_trace(const trace_options& options) {
  const std::vector<flight_trace> traces = merge_flight_records(read_all(options.directory));
  for (const flight_trace& trace : traces) {
    fmt::print("{}", trace_text(trace, options.last));
  }
  if (!options.perfetto_file.empty()) {
    write_perfetto(options.perfetto_file, traces);
  }
  return exit_code::ok;
}

}  // namespace spark_comm::app
