// SPDX-License-Identifier: AGPL-3.0-only
// What launch accepts, what it prints for other nodes, and what its ranks find in their
// environment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <command_line.hpp>
#include <exit_code.hpp>
#include <launch.hpp>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spark_comm::app {
namespace {

using testing::HasSubstr;
using testing::Not;

using words = std::vector<std::string>;

words launch(const words& more) {
  words all = {"launch"};
  all.insert(all.end(), more.begin(), more.end());
  all.insert(all.end(), {"--", "./serve", "--model", "a b's"});
  return all;
}

launch_options parsed(const words& more) {
  return std::get<launch_request>(parse_command_line(launch(more))).options;
}

// The words of a line in which only single quotes quote, as a shell reads them.
words split(const std::string& line) {
  words out;
  bool is_word = false;
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == ' ' && !is_quoted) {
      is_word = false;
      continue;
    }
    if (!std::exchange(is_word, true)) {
      out.emplace_back();
    }
    if (c == '\'') {
      is_quoted = !is_quoted;
    } else {
      out.back() += c == '\\' && !is_quoted ? line[++i] : c;
    }
  }
  return out;
}

TEST(launch, prints_the_command_of_every_node_which_is_understood_there) {
  const launch_options asked = parsed({"-n",
                                       "2",
                                       "--nodes",
                                       "2",
                                       "--head",
                                       "[fe80::1%eth0]:29500",
                                       "--key-file",
                                       "/keys/my key",
                                       "--share-gpu",
                                       "--limit",
                                       "90s"});
  const std::string text = node_commands(asked);
  EXPECT_THAT(text, HasSubstr("# ranks 0 to 1 on node 0, which has the address [fe80::1%eth0]:"));
  EXPECT_THAT(text, HasSubstr("# ranks 2 to 3 on node 1\n"));
  int node = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("#")) {
      continue;
    }
    words all = split(line);
    ASSERT_EQ(all.front(), "spark-comm");
    all.erase(all.begin());
    const auto there = std::get<launch_request>(parse_command_line(all)).options;
    EXPECT_EQ(there.node_rank, node++);
    EXPECT_EQ(there.nodes, 2);
    EXPECT_EQ(there.ranks, 2);
    EXPECT_EQ(there.head, asked.head);
    EXPECT_EQ(there.key_file, "/keys/my key");
    EXPECT_EQ(there.limit, asked.limit);
    EXPECT_TRUE(there.share_gpu);
    EXPECT_EQ(there.program, asked.program);
  }
  EXPECT_EQ(node, 2);
}

TEST(launch, gives_each_rank_its_place_among_all_nodes_and_the_key_by_its_file) {
  launch_options options =
      parsed({"-n", "2", "--nodes", "3", "--node-rank", "1", "--head", "a:1", "--key-file", "/k"});
  const auto variables = launch_environment(options, 3, "a:1");
  std::map<std::string, std::string> found{variables.begin(), variables.end()};
  EXPECT_EQ(found["SPARK_COMM_RANK"], "3");
  EXPECT_EQ(found["SPARK_COMM_WORLD_SIZE"], "6");
  EXPECT_EQ(found["SPARK_COMM_ADDRESS"], "a:1");
  EXPECT_EQ(found["SPARK_COMM_KEY_FILE"], "/k");
  options.key_file.clear();
  for (const auto& [name, value] : launch_environment(options, 3, "a:1")) {
    EXPECT_THAT(name, Not(HasSubstr("KEY")));  // what is set here is inherited
  }
}

TEST(launch, a_word_is_quoted_where_a_shell_would_change_it) {
  EXPECT_EQ(shell_quoted("--a=b,c:1/x@y%z"), "--a=b,c:1/x@y%z");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("$HOME *"), "'$HOME *'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
}

TEST(launch, what_does_not_fit_together_is_refused) {
  const std::vector<std::pair<words, const char*>> table = {
      {{"-n", "0"}, "-n 0: accepted are 1 to 64"},
      {{"--nodes", "0"}, "--nodes 0: accepted are 1 to 32 with -n 2"},
      {{"-n", "8", "--nodes", "9", "--head", "a:1"}, "accepted are 1 to 8"},
      {{"--nodes", "2"}, "--head HOST:PORT"},
      {{"--node-rank", "0"}, "give --nodes too"},
      {{"--head", "a:1"}, "give --nodes too"},
      {{"--nodes", "2", "--node-rank", "2", "--head", "a:1"}, "accepted are 0 to 1"},
      {{"--nodes", "2", "--node-rank", "-1", "--head", "a:1"}, "accepted are 0 to 1"},
      {{"--nodes", "2", "--head", "::1:29500"}, "write [::1]:29500"},
      {{"--nodes", "2", "--head", "a:0"}, "port 0 is for rank 0 only"},
  };
  for (const auto& [more, text] : table) {
    try {
      static_cast<void>(parse_command_line(launch(more)));
      ADD_FAILURE() << text;
    } catch (const failure& caught) {
      EXPECT_EQ(caught.code(), exit_code::usage);
      EXPECT_THAT(caught.what(), HasSubstr(text));
    }
  }
}

TEST(launch, without_a_node_rank_nothing_is_started) {
  launch_options options = parsed({"--nodes", "2", "--head", "a:1"});
  options.program = {"/no/such/program"};
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_launch(options), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), node_commands(options));
}

TEST(launch, the_lines_of_a_node_carry_the_ranks_of_all_nodes) {
  launch_options options =
      parsed({"-n", "2", "--nodes", "2", "--node-rank", "1", "--head", "127.0.0.1:9"});
  options.program = {"/bin/sh", "-c", "echo $SPARK_COMM_RANK; exit $SPARK_COMM_RANK"};
  testing::internal::CaptureStdout();
  const launch_result result = launch_ranks(options);
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_THAT(said, HasSubstr("[rank 2] 2\n"));
  ASSERT_TRUE(result.first_failure);
  EXPECT_EQ(result.exit_code, result.first_failure->rank);
  EXPECT_GE(result.first_failure->rank, 2);
}

}  // namespace
}  // namespace spark_comm::app
