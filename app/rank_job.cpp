// SPDX-License-Identifier: AGPL-3.0-only
#include "rank_job.hpp"

#include "bench_options.hpp"
#include "child_process.hpp"
#include "exit_code.hpp"
#include "rank_launcher.hpp"
#include "rank_report.hpp"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

namespace spark_comm::app {
namespace {

class job {
 public:
  job(const job_options& options,
      const std::vector<std::string>& command,
      const report_handler& on_report,
      const chatter_handler& on_chatter)
      : options_(options),
        command_(command),
        on_report_(on_report),
        on_chatter_(on_chatter),
        launcher_({.run = options.limit},
                  [this](int rank, rank_channel from, std::string_view line) {
                    hear(rank, from, line);
                  }) {}

  void run() {
    start("127.0.0.1:0");
    const launch_result result = launcher_.run();
    if (result.exit_code != 0) {
      throw failure_of(result);
    }
  }

 private:
  void start(std::string_view address) {
    launcher_.start({.arguments = command_,
                     .environment = rank_environment(options_, started_, address),
                     .with_report = true});
    ++started_;
  }

  void hear(int rank, rank_channel from, std::string_view line) {
    if (from != rank_channel::report) {
      on_chatter_(prefixed(rank, line));
      return;
    }
    const rank_report report = decode(line);
    if (const auto* listening = std::get_if<listening_report>(&report)) {
      while (started_ < options_.ranks) {
        start(listening->address);
      }
    } else if (const auto* failed = std::get_if<failed_report>(&report)) {
      failures_.emplace(rank, *failed);
    } else {
      on_report_(rank, report);
    }
  }

  [[nodiscard]] failure failure_of(const launch_result& result) const {
    if (!result.first_failure) {
      return {exit_code::failed, result.text};
    }
    const rank_end& first = *result.first_failure;
    const auto told = failures_.find(first.rank);
    if (first.end.signal == 0 && told != failures_.end()) {
      return {static_cast<exit_code>(told->second.exit_code),
              fmt::format("rank {}: {}", first.rank, told->second.text)};
    }
    return {exit_code::failed, result.text + "; the others were ended"};
  }

  const job_options& options_;
  const std::vector<std::string>& command_;
  const report_handler& on_report_;
  const chatter_handler& on_chatter_;
  int started_ = 0;
  std::map<int, failed_report> failures_;
  rank_launcher launcher_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> rank_environment(const job_options& options,
                                                                  int rank,
                                                                  std::string_view address) {
  std::vector<std::pair<std::string, std::string>> variables = {
      {"SPARK_COMM_ADDRESS", std::string{address}},
      {"SPARK_COMM_RANK", fmt::to_string(rank)},
      {"SPARK_COMM_WORLD_SIZE", fmt::to_string(options.ranks)}};
  // Read before any thread is started.
  if (std::getenv("SPARK_COMM_HOST_DEVICES") == nullptr) {  // NOLINT(concurrency-mt-unsafe)
    variables.emplace_back("SPARK_COMM_HOST_DEVICES", fmt::to_string(options.ranks));
  }
  if (options.share_gpu) {
    // NCCL refuses two ranks on one GPU of one host; under names of their own they are two hosts.
    variables.emplace_back("NCCL_HOSTID", fmt::format("spark-comm-{}-{}", ::getpid(), rank));
  }
  return variables;
}

void run_rank_job(const job_options& options,
                  const std::vector<std::string>& command,
                  const report_handler& on_report,
                  const chatter_handler& on_chatter) {
  job{options, command, on_report, on_chatter}.run();
}

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

}  // namespace spark_comm::app
