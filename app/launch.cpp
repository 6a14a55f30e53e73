// SPDX-License-Identifier: AGPL-3.0-only
#include "launch.hpp"

#include "child_process.hpp"
#include "exit_code.hpp"
#include "quantity.hpp"
#include "rank_job.hpp"
#include "rank_launcher.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/address.hpp>

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

// Every rank holds a connection to every other.
constexpr int most_ranks = 64;

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

// "rank 3", or "ranks 2 to 3".
std::string ranks_text(int first, int count) {
  return count == 1 ? fmt::format("rank {}", first)
                    : fmt::format("ranks {} to {}", first, first + count - 1);
}

void require_one_node(const launch_options& options) {
  if (options.node_rank || !options.head.empty()) {
    throw usage_failure("launch: --node-rank and --head are for several nodes: give --nodes too");
  }
}

void require_several_nodes(const launch_options& options) {
  if (options.head.empty()) {
    throw usage_failure(
        "launch: --nodes needs --head HOST:PORT, an address of node 0 that all nodes reach");
  }
  if (options.node_rank && (*options.node_rank < 0 || *options.node_rank >= options.nodes)) {
    throw usage_failure(fmt::format(
        "launch: --node-rank {}: accepted are 0 to {}", *options.node_rank, options.nodes - 1));
  }
  try {
    // As the last rank sees it: it cannot find a head that chooses its own port.
    const int last = options.nodes * options.ranks - 1;
    rendezvous::check_place({.address = options.head, .rank = last, .world_size = last + 1});
  } catch (const error& refusal) {
    throw usage_failure(fmt::format("launch: --head: {}", refusal.what()));
  }
}

}  // namespace

void validate(const launch_options& options) {
  if (options.program.empty()) {
    throw usage_failure("launch: no program; accepted is launch -n N -- PROGRAM [ARGUMENT ...]");
  }
  if (options.ranks < 1 || options.ranks > most_ranks) {
    throw usage_failure(
        fmt::format("launch: -n {}: accepted are 1 to {}", options.ranks, most_ranks));
  }
  if (options.nodes < 1 || options.nodes > most_ranks / options.ranks) {
    throw usage_failure(fmt::format("launch: --nodes {}: accepted are 1 to {} with -n {}",
                                    options.nodes,
                                    most_ranks / options.ranks,
                                    options.ranks));
  }
  if (options.nodes == 1) {
    require_one_node(options);
  } else {
    require_several_nodes(options);
  }
}

std::vector<std::pair<std::string, std::string>> launch_environment(const launch_options& options,
                                                                    int rank,
                                                                    const std::string& address) {
  job_options job;
  job.ranks = options.ranks * options.nodes;
  job.share_gpu = options.share_gpu;
  auto variables = rank_environment(job, rank, address);
  if (!options.key_file.empty()) {
    variables.emplace_back("SPARK_COMM_KEY_FILE", options.key_file);
  }
  return variables;
}

std::string shell_quoted(std::string_view argument) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!argument.empty() && argument.find_first_not_of(plain) == std::string_view::npos) {
    return std::string{argument};
  }
  std::string quoted = "'";
  for (const char c : argument) {
    quoted += c == '\'' ? std::string{"'\\''"} : std::string{c};
  }
  return quoted + "'";
}

std::string node_commands(const launch_options& options) {
  std::string text;
  for (int node = 0; node < options.nodes; ++node) {
    text += fmt::format("# {} on node {}{}\n",
                        ranks_text(node * options.ranks, options.ranks),
                        node,
                        node == 0 ? ", which has the address " + options.head : "");
    text += fmt::format("spark-comm launch -n {} --nodes {} --node-rank {} --head {}",
                        options.ranks,
                        options.nodes,
                        node,
                        shell_quoted(options.head));
    if (!options.key_file.empty()) {
      text += " --key-file " + shell_quoted(options.key_file);
    }
    if (options.share_gpu) {
      text += " --share-gpu";
    }
    if (options.limit > duration::zero()) {
      std::string limit = duration_text(options.limit);
      std::erase(limit, ' ');
      text += " --limit " + limit;
    }
    text += " --";
    for (const std::string& word : options.program) {
      text += " " + shell_quoted(word);
    }
    text += "\n";
  }
  return text;
}

launch_result launch_ranks(const launch_options& options) {
  const meeting_folder folder;
  const std::string address = options.nodes == 1 ? "file://" + folder.file() : options.head;
  const int first = options.node_rank.value_or(0) * options.ranks;
  rank_launcher launcher{
      {.run = options.limit > duration::zero() ? options.limit : longest_run}, print_line, first};
  for (int rank = first; rank < first + options.ranks; ++rank) {
    launcher.start(
        {.arguments = options.program, .environment = launch_environment(options, rank, address)});
  }
  return launcher.run();
}

int run_launch(const launch_options& options) {
  if (options.nodes > 1 && !options.node_rank) {
    fmt::print("{}", node_commands(options));
    return 0;
  }
  const launch_result result = launch_ranks(options);
  if (!result.text.empty()) {
    fmt::print(stderr, "spark-comm: launch: {}\n", result.text);
  }
  return result.exit_code;
}

}  // namespace spark_comm::app
