// SPDX-License-Identifier: AGPL-3.0-only
// Which command lines are taken, and that every other gets one line that names what is accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <child_process.hpp>
#include <chrono>
#include <command_line.hpp>
#include <exit_code.hpp>
#include <fcntl.h>
#include <info.hpp>
#include <mps.hpp>
#include <nlohmann/json.hpp>
#include <run.hpp>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

namespace spark_comm::app {
namespace {

using std::chrono_literals::operator""ms;
using testing::HasSubstr;
using testing::Not;

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    static_cast<void>(parse_command_line(arguments));
  } catch (const failure& caught) {
    EXPECT_EQ(caught.code(), exit_code::usage);
    return caught.what();
  }
  return "accepted";
}

TEST(command_line, bench_takes_all_its_options) {
  const auto asked = std::get<bench_request>(parse_command_line(
      {"bench",     "reduce", "--min",        "1K",        "--max",       "2M",
       "--factor",  "4",      "--dtype",      "bf16",      "--op",        "max",
       "--root",    "2",      "--iterations", "7",         "--warmup",    "3",
       "--runtime", "host",   "--nccl",       "/lib/x.so", "--json",      "out.json",
       "--ranks",   "3",      "--deadline",   "1500ms",    "--share-gpu", "--mode",
       "pipelined", "--link", "200",          "--limit",   "5s"}));
  const bench_options& options = asked.options;
  EXPECT_EQ(options.what, operation::reduce);
  EXPECT_EQ(options.min_bytes, 1024U);
  EXPECT_EQ(options.max_bytes, 2097152U);
  EXPECT_EQ(options.factor, 4U);
  EXPECT_EQ(options.dtype, data_type::bfloat16);
  EXPECT_EQ(options.op, reduce_op::max);
  EXPECT_EQ(options.root, 2);
  EXPECT_EQ(options.iterations, 7);
  EXPECT_EQ(options.warmup, 3);
  EXPECT_EQ(options.mode, timing_mode::pipelined);
  EXPECT_EQ(options.link_gigabits, 200);
  EXPECT_EQ(options.json_file, "out.json");
  EXPECT_EQ(options.job.runtime, runtime_kind::host);
  EXPECT_EQ(options.job.nccl_library, "/lib/x.so");
  EXPECT_EQ(options.job.ranks, 3);
  EXPECT_EQ(options.job.deadline, 1500ms);
  EXPECT_TRUE(options.job.share_gpu);
}

TEST(command_line, bench_needs_only_its_operation) {
  const auto asked = std::get<bench_request>(parse_command_line({"bench", "all_reduce"}));
  EXPECT_EQ(asked.options.job.ranks, 2);
  EXPECT_EQ(asked.options.dtype, data_type::float32);
  EXPECT_FALSE(asked.options.max_bytes);
}

TEST(command_line, check_and_info_take_theirs) {
  EXPECT_EQ(std::get<check_request>(parse_command_line({"check", "--ranks", "3"})).options.ranks,
            3);
  const auto info =
      std::get<info_request>(parse_command_line({"info", "--json", "--runtime", "nvidia"}));
  EXPECT_TRUE(info.options.as_json);
  EXPECT_EQ(info.options.runtime, runtime_kind::nvidia);
}

TEST(command_line, whatever_is_not_accepted_is_told_in_one_line) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> table = {
      {{}, "accepted are bench, check, info, doctor, launch, trace, demo, tune, help"},
      {{"dance"}, "accepted are bench, check, info, doctor, launch, trace, demo, tune, help"},
      {{"bench"}, "operation"},
      {{"bench", "all-reduce"}, "accepted are all_reduce, reduce, broadcast, all_gather"},
      {{"bench", "all_reduce", "--speed"}, "accepted are --help, --min, --max"},
      {{"bench", "all_reduce", "--min", "big"}, "--min big: accepted are 8, 4K, 1M, 2G"},
      {{"bench", "all_reduce", "--dtype", "fp4"}, "--dtype fp4: accepted are int8, uint8"},
      {{"bench", "all_reduce", "--op", "xor"}, "accepted are sum, prod, max, min, avg"},
      {{"bench", "all_reduce", "--runtime", "amd"}, "accepted are auto, nvidia, host"},
      {{"bench", "all_reduce", "--mode", "fast"}, "accepted are synchronized, pipelined"},
      {{"bench", "all_reduce", "--deadline", "soon"}, "accepted are 30s, 500ms, 2m"},
      {{"bench", "all_reduce", "--ranks", "two"}, "--ranks"},
      {{"bench", "all_reduce", "--ranks", "0"}, "accepted are 1 to 64"},
      {{"bench", "all_reduce", "--json"}, "--json"},
      {{"check", "--ranks", "99"}, "accepted are 1 to 64"},
      {{"check", "all_reduce"}, "accepted are --help, --runtime"},
      {{"info", "--yaml"}, "accepted are --help, --runtime, --nccl, --json"},
      {{"help", "dance"},
       "help dance: accepted are bench, check, info, doctor, launch, trace, demo, tune, help"},
  };
  for (const auto& [arguments, text] : table) {
    const std::string told = refusal(arguments);
    EXPECT_THAT(told, HasSubstr(text));
    EXPECT_THAT(told, Not(HasSubstr("\n")));
  }
}

TEST(command_line, help_and_version_are_texts) {
  const auto text = [](const std::vector<std::string>& arguments) {
    return std::get<show_text>(parse_command_line(arguments)).text;
  };
  for (const char* const verb : {"bench", "check", "info"}) {
    EXPECT_THAT(text({"help"}), HasSubstr(verb));
  }
  EXPECT_EQ(text({"help"}), text({"--help"}));
  EXPECT_THAT(text({"help", "bench"}), HasSubstr("--iterations"));
  EXPECT_EQ(text({"help", "bench"}), text({"bench", "--help"}));
  EXPECT_THAT(text({"--version"}), HasSubstr("spark-comm 0."));
}

TEST(run, errors_are_one_line_on_stderr_and_their_code) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run({"dance"}), exit_code::usage);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(told.rfind("spark-comm: ", 0), 0U);
  EXPECT_EQ(told.find('\n'), told.size() - 1);
}

TEST(run, a_rank_that_nobody_started_is_a_usage_error) {
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::dup2(null, report_descriptor), report_descriptor);
  testing::internal::CaptureStderr();
  EXPECT_EQ(run({"rank", "info"}), exit_code::usage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("start themselves"));
}

TEST(exit_code, follows_the_kind_of_error) {
  EXPECT_EQ(exit_code_for(errc::invalid_argument), exit_code::usage);
  EXPECT_EQ(exit_code_for(errc::not_supported), exit_code::not_available);
  for (const errc code : all_errcs) {
    EXPECT_GE(static_cast<int>(exit_code_for(code)), 2);
  }
}

TEST(mps, its_pipe_is_looked_for_where_cuda_does) {
  EXPECT_EQ(mps_control_pipe([](const std::string&) { return std::string{}; }),
            "/tmp/nvidia-mps/control");
  const std::string folder = testing::TempDir() + "mps_test";
  ::mkdir(folder.c_str(), 0700);
  const std::string pipe = mps_control_pipe([&](const std::string& name) {
    EXPECT_EQ(name, "CUDA_MPS_PIPE_DIRECTORY");
    return folder;
  });
  EXPECT_EQ(pipe, folder + "/control");
  EXPECT_FALSE(is_mps_running(pipe));
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(is_mps_running(pipe));
  ::unlink(pipe.c_str());
  ::rmdir(folder.c_str());
  EXPECT_THAT(mps_advice(pipe), HasSubstr("nvidia-cuda-mps-control -d"));
}

info_facts facts(const std::string& runtime) {
  return {.runtime = runtime,
          .description = "one line",
          .driver_file = "/lib/driver.so",
          .driver_version = "13.0",
          .nccl_file = "/lib/nccl.so",
          .nccl_version = "2.28.9",
          .nccl_build_id = "",
          .capabilities = {{.name = "fp8", .is_there = false, .since = "2.24.3"}},
          .devices = {{.ordinal = 0,
                       .name = "Device",
                       .uuid = "GPU-0",
                       .pci_bus_id = "0000:00:00.0",
                       .compute_capability = "9.0",
                       .total_bytes = 1ULL << 30U,
                       .free_bytes = 1ULL << 29U}}};
}

TEST(info, says_plainly_when_no_gpu_is_used) {
  EXPECT_THAT(info_text(facts("host")), HasSubstr("No GPU is used."));
  EXPECT_THAT(info_text(facts("nvidia")), Not(HasSubstr("No GPU")));
  EXPECT_THAT(info_text(facts("host")), HasSubstr("fp8         no  (since NCCL 2.24.3)"));
  EXPECT_THAT(info_text(facts("host")), HasSubstr("compute 9.0, 512 MiB free of 1 GiB"));
}

TEST(info, json_has_the_same_facts) {
  const nlohmann::json json = nlohmann::json::parse(info_json(facts("host")));
  EXPECT_EQ(json["schema"], "spark-comm/info");
  EXPECT_EQ(json["uses_gpu"], false);
  EXPECT_EQ(json["nccl"]["version"], "2.28.9");
  EXPECT_EQ(json["devices"][0]["free_bytes"], 1U << 29U);
  EXPECT_EQ(json["capabilities"][0]["supported"], false);
}

}  // namespace
}  // namespace spark_comm::app
