// SPDX-License-Identifier: AGPL-3.0-only
#include "launch.hpp"

#include "child_process.hpp"
#include "exit_code.hpp"
#include "rank_job.hpp"
#include "rank_launcher.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace spark_comm::app {
namespace {

constexpr duration longest_run = std::chrono::hours{24 * 365};

// The folder in which the ranks meet; it goes with the job, whatever the ranks left in it.
class meeting_folder {
 public:
  meeting_folder() {
    std::string path =
        (std::filesystem::temp_directory_path() / "spark-comm-launch-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) {
      throw failure(exit_code::failed,
                    fmt::format("cannot make a folder like {} for the ranks to meet in: {}",
                                path,
                                std::generic_category().message(errno)));
    }
    path_ = path;
  }

  meeting_folder(const meeting_folder&) = delete;
  meeting_folder& operator=(const meeting_folder&) = delete;
  meeting_folder(meeting_folder&&) = delete;
  meeting_folder& operator=(meeting_folder&&) = delete;

  ~meeting_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string file() const { return (path_ / "meeting").string(); }

 private:
  std::filesystem::path path_;
};

void print_line(int rank, rank_channel from, std::string_view line) {
  std::FILE* const to = from == rank_channel::output ? stdout : stderr;
  fmt::print(to, "{}\n", prefixed(rank, line));
  std::fflush(to);
}

}  // namespace

void validate(const launch_options& options) {
  if (options.program.empty()) {
    throw usage_failure("launch: no program; accepted is launch -n N -- PROGRAM [ARGUMENT ...]");
  }
  if (options.ranks < 1 || options.ranks > 64) {
    throw usage_failure(fmt::format("launch: -n {}: accepted are 1 to 64", options.ranks));
  }
}

std::vector<std::pair<std::string, std::string>> launch_environment(const launch_options& options,
                                                                    int rank,
                                                                    const std::string& meeting) {
  job_options job;
  job.ranks = options.ranks;
  job.share_gpu = options.share_gpu;
  return rank_environment(job, rank, "file://" + meeting);
}

launch_result launch_ranks(const launch_options& options) {
  const meeting_folder folder;
  rank_launcher launcher{{.run = options.limit > duration::zero() ? options.limit : longest_run},
                         print_line};
  for (int rank = 0; rank < options.ranks; ++rank) {
    launcher.start({.arguments = options.program,
                    .environment = launch_environment(options, rank, folder.file())});
  }
  return launcher.run();
}

int run_launch(const launch_options& options) {
  const launch_result result = launch_ranks(options);
  if (!result.text.empty()) {
    fmt::print(stderr, "spark-comm: launch: {}\n", result.text);
  }
  return result.exit_code;
}

}  // namespace spark_comm::app
