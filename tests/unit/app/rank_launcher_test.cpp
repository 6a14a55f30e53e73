// SPDX-License-Identifier: AGPL-3.0-only
// Supervision of rank processes, with shell scripts in the place of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <child_process.hpp>
#include <chrono>
#include <exit_code.hpp>
#include <line_splitter.hpp>
#include <rank_launcher.hpp>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace spark_comm::app {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

child_command shell(const std::string& script, bool with_report = false) {
  return {.arguments = {"/bin/sh", "-c", script}, .environment = {}, .with_report = with_report};
}

struct heard {
  std::vector<std::string> output;
  std::vector<std::string> error;
  std::vector<std::string> report;

  rank_launcher::line_handler handler() {
    return [this](int rank, rank_channel from, std::string_view line) {
      auto& lines = from == rank_channel::output  ? output
                    : from == rank_channel::error ? error
                                                  : report;
      lines.push_back(prefixed(rank, line));
    };
  }
};

launch_limits quick() {
  return {.run = 20s, .grace = 200ms};
}

TEST(rank_launcher, ranks_that_end_well_end_the_job_well) {
  heard lines;
  rank_launcher launcher{quick(), lines.handler()};
  EXPECT_EQ(launcher.start(shell("echo hello; echo oops >&2; echo fact >&3", true)), 0);
  EXPECT_EQ(launcher.start(shell("true")), 1);
  const launch_result result = launcher.run();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(result.first_failure);
  EXPECT_THAT(result.text, IsEmpty());
  EXPECT_THAT(lines.output, ElementsAre("[rank 0] hello"));
  EXPECT_THAT(lines.error, ElementsAre("[rank 0] oops"));
  EXPECT_THAT(lines.report, ElementsAre("[rank 0] fact"));
}

TEST(rank_launcher, one_that_fails_ends_the_others_and_gives_its_code) {
  heard lines;
  rank_launcher launcher{quick(), lines.handler()};
  launcher.start(shell("sleep 60"));
  launcher.start(shell("exit 7"));
  const auto began = std::chrono::steady_clock::now();
  const launch_result result = launcher.run();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  EXPECT_EQ(result.exit_code, 7);
  ASSERT_TRUE(result.first_failure);
  EXPECT_EQ(result.first_failure->rank, 1);
  EXPECT_EQ(result.text, "rank 1 ended with exit code 7");
}

TEST(rank_launcher, a_signal_is_named) {
  heard lines;
  rank_launcher launcher{quick(), lines.handler()};
  launcher.start(shell("kill -9 $$"));
  launcher.start(shell("sleep 60"));
  const launch_result result = launcher.run();
  EXPECT_EQ(result.exit_code, 128 + 9);
  EXPECT_EQ(result.text, "rank 0 was killed by signal 9 (SIGKILL)");
}

TEST(rank_launcher, one_that_ignores_the_request_to_end_is_killed) {
  heard lines;
  rank_launcher launcher{quick(), lines.handler()};
  launcher.start(shell("trap '' TERM; echo ready; while true; do sleep 1; done"));
  launcher.start(shell("sleep 0.3; exit 3"));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(launcher.run().exit_code, 3);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
}

TEST(rank_launcher, what_a_rank_started_ends_with_it) {
  // Makes us the parent of the orphan, so that we can see how it ended.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  heard lines;
  rank_launcher launcher{quick(), lines.handler()};
  launcher.start(shell("sleep 60 & echo $!; wait"));
  launcher.start(shell("sleep 0.3; exit 3"));
  EXPECT_EQ(launcher.run().exit_code, 3);
  ASSERT_EQ(lines.output.size(), 1U);
  const pid_t grandchild = std::stoi(lines.output[0].substr(sizeof("[rank 0]")));
  int status = 0;
  ASSERT_EQ(::waitpid(grandchild, &status, 0), grandchild);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(rank_launcher, the_run_has_a_limit) {
  heard lines;
  rank_launcher launcher{{.run = 100ms, .grace = 100ms}, lines.handler()};
  launcher.start(shell("sleep 60"));
  const launch_result result = launcher.run();
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.text, HasSubstr("longer than its limit of 100 ms"));
}

TEST(rank_launcher, a_handler_may_start_further_ranks) {
  std::vector<std::string> said;
  rank_launcher* self = nullptr;
  rank_launcher launcher{quick(), [&](int rank, rank_channel, std::string_view line) {
                           said.push_back(prefixed(rank, line));
                           if (rank == 0) {
                             self->start({.arguments = {"/bin/sh", "-c", "echo $WHERE"},
                                          .environment = {{"WHERE", std::string{line}}},
                                          .with_report = false});
                           }
                         }};
  self = &launcher;
  launcher.start(shell("echo there >&3", true));
  EXPECT_EQ(launcher.run().exit_code, 0);
  EXPECT_THAT(said, ElementsAre("[rank 0] there", "[rank 1] there"));
}

TEST(rank_launcher, a_handler_that_throws_leaves_no_rank_behind) {
  pid_t child = 0;
  {
    rank_launcher launcher{quick(), [&](int, rank_channel, std::string_view line) {
                             child = std::stoi(std::string{line});
                             throw std::runtime_error("stop");
                           }};
    launcher.start(shell("echo $$; exec sleep 60"));
    EXPECT_THROW(static_cast<void>(launcher.run()), std::runtime_error);
  }
  EXPECT_TRUE(::kill(child, 0) != 0 && errno == ESRCH);
}

TEST(rank_launcher, a_request_to_end_ends_all_ranks) {
  const std::string us = std::to_string(::getpid());
  heard lines;
  rank_launcher launcher{quick(), lines.handler()};
  launcher.start(shell("kill -TERM " + us + "; sleep 60"));
  launcher.start(shell("sleep 60"));
  const launch_result result = launcher.run();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_EQ(result.text, "interrupted by SIGTERM");
}

TEST(rank_launcher, signals_are_passed_on_as_they_came) {
  const std::string us = std::to_string(::getpid());
  heard lines;
  rank_launcher launcher{{.run = 20s, .grace = 10s}, lines.handler(), 4};
  launcher.start(shell("trap 'echo usr1; kill -INT " + us +
                       "' USR1; trap 'echo int; exit 3' INT; kill -USR1 " + us +
                       "; while :; do sleep 0.01; done"));
  const launch_result result = launcher.run();
  EXPECT_EQ(result.exit_code, 128 + SIGINT);
  EXPECT_EQ(result.text, "interrupted by SIGINT");
  EXPECT_THAT(lines.output, ElementsAre("[rank 4] usr1", "[rank 4] int"));
}

TEST(rank_launcher, a_program_that_is_not_there_is_named) {
  heard lines;
  rank_launcher launcher{quick(), lines.handler()};
  try {
    launcher.start({.arguments = {"/no/such/program"}, .environment = {}, .with_report = false});
    FAIL();
  } catch (const failure& caught) {
    EXPECT_EQ(caught.code(), exit_code::not_available);
    EXPECT_THAT(caught.what(), HasSubstr("/no/such/program"));
    EXPECT_THAT(caught.what(), HasSubstr("No such file"));
  }
}

TEST(rank_launcher, variables_replace_inherited_ones) {
  heard lines;
  rank_launcher launcher{quick(), lines.handler()};
  launcher.start({.arguments = {"/bin/sh", "-c", "echo $HOME; env | grep -c ^HOME="},
                  .environment = {{"HOME", "/elsewhere"}},
                  .with_report = false});
  EXPECT_EQ(launcher.run().exit_code, 0);
  EXPECT_THAT(lines.output, ElementsAre("[rank 0] /elsewhere", "[rank 0] 1"));
}

TEST(rank_launcher, a_lot_of_output_arrives_whole) {
  std::size_t count = 0;
  rank_launcher launcher{quick(), [&](int, rank_channel, std::string_view) { ++count; }};
  launcher.start(shell("seq 200000"));
  EXPECT_EQ(launcher.run().exit_code, 0);
  EXPECT_EQ(count, 200000U);
}

TEST(rank_launcher, the_cause_is_a_signal_before_a_failure_before_a_later_rank) {
  const rank_end well{.rank = 0, .end = {}};
  const rank_end failed{.rank = 1, .end = {.status = 4, .signal = 0}};
  const rank_end killed{.rank = 2, .end = {.status = 0, .signal = 9}};
  const rank_end failed_too{.rank = 3, .end = {.status = 5, .signal = 0}};
  const auto cause = [](std::vector<rank_end> ends) { return cause_of(ends); };
  EXPECT_FALSE(cause({}));
  EXPECT_FALSE(cause({well}));
  EXPECT_EQ(cause({well, failed, killed})->rank, 2);
  EXPECT_EQ(cause({killed, failed})->rank, 2);
  EXPECT_EQ(cause({failed_too, failed})->rank, 1);
}

TEST(line_splitter, lines_are_put_together_from_pieces) {
  line_splitter splitter;
  std::vector<std::string> lines;
  const auto keep = [&](std::string_view line) { lines.emplace_back(line); };
  splitter.feed("one\ntw", keep);
  splitter.feed("o\n\nthr", keep);
  splitter.feed("ee", keep);
  EXPECT_THAT(lines, ElementsAre("one", "two", ""));
  splitter.flush(keep);
  EXPECT_THAT(lines, ElementsAre("one", "two", "", "three"));
  splitter.flush(keep);
  EXPECT_EQ(lines.size(), 4U);
}

TEST(line_splitter, an_endless_line_is_cut) {
  line_splitter splitter;
  std::vector<std::size_t> lengths;
  splitter.feed(std::string(line_splitter::longest_line + 5, 'x'),
                [&](std::string_view line) { lengths.push_back(line.size()); });
  EXPECT_THAT(lengths, ElementsAre(line_splitter::longest_line));
}

}  // namespace
}  // namespace spark_comm::app
