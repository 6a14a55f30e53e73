// SPDX-License-Identifier: AGPL-3.0-only
// The fault script's grammar: what each rule means, and where and how every mistake is refused.
#include "host/fault_script.hpp"

#include <spark_comm/cuda/api.hpp>
#include <spark_comm/nccl/api.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::host {
namespace {

using namespace std::chrono_literals;

// One line that says all of a rule.
std::string text_of(const fault_rule& rule) {
  const auto number = [](auto value) { return std::to_string(value); };
  std::string text = "rank " + (rule.rank == any_rank ? "*" : number(rule.rank));
  if (rule.event == fault_event::operations) {
    text += " operations";
  } else {
    text += " " + rule.call;
  }
  switch (rule.occasion) {
    case fault_occasion::every: text += " every"; break;
    case fault_occasion::nth:   text += " nth " + number(rule.count); break;
    case fault_occasion::from:  text += " from " + number(rule.count); break;
  }
  const std::string time = " " + number(rule.time.count()) + "ns";
  const std::string code = " " + number(rule.code);
  switch (rule.action) {
    case fault_action::delay:       return text + " delay" + time;
    case fault_action::give_back:   return text + " return" + code;
    case fault_action::kill:        return text + " kill";
    case fault_action::stop:        return text + " stop";
    case fault_action::freeze:      return text + " freeze" + time;
    case fault_action::hang:        return text + " hang";
    case fault_action::in_progress: return text + " in_progress " + number(rule.polls) + code;
    case fault_action::async_error: return text + " async_error" + code;
    case fault_action::corrupt:     return text + " corrupt";
  }
  return text;
}

std::string text_of(const parsed_script& script) {
  if (script.problem) {
    return describe(*script.problem);
  }
  std::string text;
  for (const fault_rule& rule : script.rules) {
    text += (text.empty() ? "" : "; ") + text_of(rule);
  }
  return text;
}

struct script_case {
  std::string_view script;
  std::string_view expected;
};

constexpr std::string_view call_accepted =
    "the full name of an nccl or cu call of the host runtime, nccl*, cu* or *";
constexpr std::string_view call_actions =
    "delay T, return CODE, kill, stop, freeze T, hang, in_progress K then CODE";
constexpr std::string_view time_accepted = "a whole number with ns, us, ms or s, of at most 86400s";

TEST(fault_script, reads_every_rule) {
  const std::vector<script_case> cases{
      {"rank 1 call ncclAllReduce nth 3 delay 2s", "rank 1 ncclAllReduce nth 3 delay 2000000000ns"},
      {"rank 1 call ncclAllReduce nth 5 kill", "rank 1 ncclAllReduce nth 5 kill"},
      {"rank * call ncclCommInitRankConfig in_progress 1000 then 2",
       "rank * ncclCommInitRankConfig every in_progress 1000 2"},
      {"rank * call ncclCommSplit nth 1 in_progress 3 then 0",
       "rank * ncclCommSplit nth 1 in_progress 3 0"},
      {"rank 0 after 4 ops async_error 6", "rank 0 operations nth 4 async_error 6"},
      {"rank 1 abort hang", "rank 1 ncclCommAbort every hang"},
      {"rank 0 call ncclCommRegister nth 2 return 3", "rank 0 ncclCommRegister nth 2 return 3"},
      {"rank 1 freeze 3s", "rank 1 operations nth 1 freeze 3000000000ns"},
      {"rank 1 after 7 ops freeze 3ms", "rank 1 operations nth 7 freeze 3000000ns"},
      {"rank * after 1 ops corrupt", "rank * operations nth 1 corrupt"},
      {"rank * after 1 ops kill", "rank * operations nth 1 kill"},
      {"rank * after 1 ops stop", "rank * operations nth 1 stop"},
      {"rank 2 call cuMemAlloc_v2 from 4 return 2", "rank 2 cuMemAlloc_v2 from 4 return 2"},
      {"rank 2 call nccl* nth 40 return 1000", "rank 2 nccl* nth 40 return 1000"},
      {"rank 2 call cu* from 40 return 700", "rank 2 cu* from 40 return 700"},
      {"rank 2 call * nth 1 stop", "rank 2 * nth 1 stop"},
      {"rank 0 call cuInit hang", "rank 0 cuInit every hang"},
      {"rank 0 call cuInit freeze 5us", "rank 0 cuInit every freeze 5000ns"},
      {"rank 0 call cuInit delay 7ns", "rank 0 cuInit every delay 7ns"},
      {"rank 0 call cuInit delay 86400s", "rank 0 cuInit every delay 86400000000000ns"},
  };
  for (const script_case& each : cases) {
    EXPECT_EQ(text_of(parse_fault_script(each.script)), each.expected);
  }
}

TEST(fault_script, separates_rules_by_lines_and_semicolons_and_skips_comments) {
  const std::string_view script =
      "# two ranks\n"
      "\n"
      "  rank 0 call cuInit return 1 ;\trank 1 call cuInit return 2;;\r\n"
      "rank 2 call cuInit return 3 # the third; rank 9 is not meant\n"
      "rank 3 call cuInit return 4";
  EXPECT_EQ(text_of(parse_fault_script(script)),
            "rank 0 cuInit every return 1; rank 1 cuInit every return 2; "
            "rank 2 cuInit every return 3; rank 3 cuInit every return 4");
  for (const std::string_view empty : {"", "\n", ";", "# nothing", " \t\r\n;#"}) {
    EXPECT_EQ(text_of(parse_fault_script(empty)), "") << empty;
    EXPECT_FALSE(parse_fault_script(empty).problem);
  }
}

TEST(fault_script, refuses_what_it_does_not_know_and_says_what_it_does) {
  const auto refusal = [](std::size_t column, std::string_view found, std::string_view accepted) {
    return "line 1, column " + std::to_string(column) + ": " + std::string{found} +
           "; accepted: " + std::string{accepted};
  };

  struct refused_case {
    std::string_view script;
    std::string expected;
  };

  const std::vector<refused_case> cases{
      {"ranks 1 abort hang", refusal(1, "'ranks'", "'rank'")},
      {"rank", refusal(5, "the rule ends", "* or a rank from 0 to 1000000")},
      {"rank x abort hang", refusal(6, "'x'", "* or a rank from 0 to 1000000")},
      {"rank -1 abort hang", refusal(6, "'-1'", "* or a rank from 0 to 1000000")},
      {"rank 1x abort hang", refusal(6, "'1x'", "* or a rank from 0 to 1000000")},
      {"rank 1000001 abort hang", refusal(6, "'1000001'", "* or a rank from 0 to 1000000")},
      {"rank 1", refusal(7, "the rule ends", "call, after, abort, freeze")},
      {"rank 1 dies", refusal(8, "'dies'", "call, after, abort, freeze")},
      {"rank 1 call", refusal(12, "the rule ends", call_accepted)},
      {"rank 1 call ncclAllreduce kill", refusal(13, "'ncclAllreduce'", call_accepted)},
      {"rank 1 call ncclGetErrorString kill", refusal(13, "'ncclGetErrorString'", call_accepted)},
      {"rank 1 call cuMem* kill", refusal(13, "'cuMem*'", call_accepted)},
      {"rank 1 call cuMemFree kill", refusal(13, "'cuMemFree'", "cuMemFree_v2")},
      {"rank 1 call cuInit", refusal(19, "the rule ends", call_actions)},
      {"rank 1 call cuInit nth", refusal(23, "the rule ends", "a number from 1 to 1000000000")},
      {"rank 1 call cuInit nth 0 kill", refusal(24, "'0'", "a number from 1 to 1000000000")},
      {"rank 1 call cuInit from 1000000001 kill",
       refusal(25, "'1000000001'", "a number from 1 to 1000000000")},
      {"rank 1 call cuInit nth 99999999999999999999 kill",
       refusal(24, "'99999999999999999999'", "a number from 1 to 1000000000")},
      {"rank 1 call cuInit nth 2", refusal(25, "the rule ends", call_actions)},
      {"rank 1 call cuInit explode", refusal(20, "'explode'", call_actions)},
      {"rank 1 call cuInit corrupt", refusal(20, "'corrupt'", call_actions)},
      {"rank 1 call cuInit delay", refusal(25, "the rule ends", time_accepted)},
      {"rank 1 call cuInit delay 2", refusal(26, "'2'", time_accepted)},
      {"rank 1 call cuInit delay 2 s", refusal(26, "'2'", time_accepted)},
      {"rank 1 call cuInit delay 2m", refusal(26, "'2m'", time_accepted)},
      {"rank 1 call cuInit delay 0.5s", refusal(26, "'0.5s'", time_accepted)},
      {"rank 1 call cuInit delay -1s", refusal(26, "'-1s'", time_accepted)},
      {"rank 1 call cuInit delay 86401s", refusal(26, "'86401s'", time_accepted)},
      {"rank 1 call cuInit freeze", refusal(26, "the rule ends", time_accepted)},
      {"rank 1 call cuInit return",
       refusal(26, "the rule ends", "a result code from 0 to 2147483647")},
      {"rank 1 call cuInit return -1", refusal(27, "'-1'", "a result code from 0 to 2147483647")},
      {"rank 1 call cuInit return 2147483648",
       refusal(27, "'2147483648'", "a result code from 0 to 2147483647")},
      {"rank 1 call cuInit return 1 twice", refusal(29, "'twice'", "the end of the rule")},
      {"rank 1 call cuInit hang 3s", refusal(25, "'3s'", "the end of the rule")},
      {"rank 1 call ncclSend in_progress",
       refusal(33, "the rule ends", "a number from 1 to 1000000000")},
      {"rank 1 call ncclSend in_progress 3", refusal(35, "the rule ends", "'then'")},
      {"rank 1 call ncclSend in_progress 3 and 2", refusal(36, "'and'", "'then'")},
      {"rank 1 call ncclSend in_progress 3 then",
       refusal(40, "the rule ends", "a result code from 0 to 2147483647")},
      {"rank 1 call nccl* in_progress 3 then 2",
       refusal(
           19,
           "'in_progress'",
           "another action, since nccl* leaves no communicator in progress: delay, return, kill, "
           "stop, freeze, hang")},
      {"rank 1 after", refusal(13, "the rule ends", "a number from 1 to 1000000000")},
      {"rank 1 after 0 ops corrupt", refusal(14, "'0'", "a number from 1 to 1000000000")},
      {"rank 1 after 3 corrupt", refusal(16, "'corrupt'", "'ops'")},
      {"rank 1 after 3 ops",
       refusal(19, "the rule ends", "async_error CODE, corrupt, kill, stop, freeze T")},
      {"rank 1 after 3 ops delay 1s",
       refusal(20, "'delay'", "async_error CODE, corrupt, kill, stop, freeze T")},
      {"rank 1 after 3 ops async_error 0",
       refusal(32, "'0'", "a result code from 1 to 2147483647")},
      {"rank 1 abort", refusal(13, "the rule ends", "'hang'")},
      {"rank 1 abort kill", refusal(14, "'kill'", "'hang'")},
      {"rank 1 freeze soon", refusal(15, "'soon'", time_accepted)},
  };
  for (const refused_case& each : cases) {
    const parsed_script script = parse_fault_script(each.script);
    EXPECT_EQ(text_of(script), each.expected) << each.script;
    EXPECT_TRUE(script.rules.empty());
  }
}

TEST(fault_script, names_the_line_and_the_column_of_a_mistake) {
  const auto place = [](std::string_view script) {
    const auto problem = parse_fault_script(script).problem;
    return problem ? std::pair{problem->line, problem->column}
                   : std::pair{std::size_t{}, std::size_t{}};
  };
  const auto at = [](std::size_t line, std::size_t column) { return std::pair{line, column}; };
  EXPECT_EQ(place("# a comment; with all; sorts\nrank 0 abort hang\n  rank 0 aport hang"),
            at(3, 10));
  EXPECT_EQ(place("rank 0 abort hang; rank 0 aport"), at(1, 27));
  EXPECT_EQ(place("\n;;  nonsense"), at(2, 5));
}

// --- What is known of the calls.

TEST(fault_script, knows_every_call_of_both_tables) {
  const std::set<std::string_view> known{fault_calls().begin(), fault_calls().end()};
  EXPECT_EQ(known.size(), fault_calls().size()) << "a call is listed twice";
  const std::set<std::string_view> texts{
      "cuGetErrorName", "cuGetErrorString", "ncclGetErrorString", "ncclGetLastError"};
  const auto expect_known = [&](std::string_view name) {
    EXPECT_NE(known.contains(name), texts.contains(name)) << name;
  };
#define SPARK_COMM_EXPECT_CUDA(name, arguments) expect_known(#name);
#define SPARK_COMM_EXPECT_NCCL(type, name, arguments) expect_known(#name);
#define SPARK_COMM_EXPECT_NCCL_OPTIONAL(type, name, arguments, since) expect_known(#name);
  SPARK_COMM_CUDA_FUNCTIONS(SPARK_COMM_EXPECT_CUDA)
  SPARK_COMM_NCCL_REQUIRED_FUNCTIONS(SPARK_COMM_EXPECT_NCCL)
  SPARK_COMM_NCCL_OPTIONAL_FUNCTIONS(SPARK_COMM_EXPECT_NCCL_OPTIONAL)
#undef SPARK_COMM_EXPECT_CUDA
#undef SPARK_COMM_EXPECT_NCCL
#undef SPARK_COMM_EXPECT_NCCL_OPTIONAL
}

TEST(fault_script, patterns_mean_a_family_without_the_calls_that_poll) {
  EXPECT_TRUE(matches("ncclSend", "ncclSend"));
  EXPECT_FALSE(matches("ncclSend", "ncclSends"));
  EXPECT_TRUE(matches("cuStreamQuery", "cuStreamQuery"));
  for (const std::string_view call : fault_calls()) {
    const bool is_polled =
        call == "cuStreamQuery" || call == "cuEventQuery" || call == "ncclCommGetAsyncError";
    EXPECT_EQ(matches("*", call), !is_polled) << call;
    EXPECT_EQ(matches("nccl*", call), !is_polled && call.starts_with("nccl")) << call;
    EXPECT_EQ(matches("cu*", call), !is_polled && call.starts_with("cu")) << call;
  }
}

TEST(fault_script, releases_are_the_calls_that_give_something_back) {
  EXPECT_TRUE(is_release("cuMemFree_v2"));
  EXPECT_TRUE(is_release("ncclCommAbort"));
  EXPECT_TRUE(is_release("ncclGroupEnd"));
  EXPECT_FALSE(is_release("ncclCommDestroy")) << "NCCL refuses it and keeps the communicator";
  EXPECT_FALSE(is_release("cuMemAlloc_v2"));
  EXPECT_TRUE(is_gathered("ncclSend"));
  EXPECT_FALSE(is_gathered("ncclCommAbort"));
}

// --- Any bytes: a rule or a refusal inside the text, never anything else.

std::string mutate(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return std::size_t{random()} % limit; };
  constexpr std::string_view bytes{" ;\n#*0189szxr\0\xff\t", 17};
  for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
    const std::size_t at = below(text.size() + 1);
    switch (below(3)) {
      case 0: text.insert(at, 1, bytes[below(bytes.size())]); break;
      case 1: text.erase(at, below(5)); break;
      default:
        if (at < text.size()) {
          text[at] = bytes[below(bytes.size())];
        }
    }
  }
  return text;
}

TEST(fault_script, survives_any_text) {
  const std::string seed =
      "rank 1 call ncclAllReduce nth 3 delay 2s; rank * call ncclCommInitRankConfig in_progress 10 "
      "then 2\nrank 0 after 4 ops async_error 6 # why\nrank 1 abort hang;rank 1 freeze 3s";
  std::mt19937 random{20260};  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same texts in every run
  std::size_t accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = mutate(seed, random);
    const parsed_script script = parse_fault_script(text);
    if (!script.problem) {
      ++accepted;
      continue;
    }
    const auto lines = 1 + static_cast<std::size_t>(std::ranges::count(text, '\n'));
    ASSERT_TRUE(script.rules.empty());
    ASSERT_LE(script.problem->line, lines) << text;
    ASSERT_GE(script.problem->column, 1U) << text;
    ASSERT_LE(script.problem->column, text.size() + 1) << text;
  }
  EXPECT_GT(accepted, 100U);
  EXPECT_LT(accepted, 19900U);
}

}  // namespace
}  // namespace spark_comm::host
