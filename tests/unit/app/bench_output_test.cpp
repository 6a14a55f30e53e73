// SPDX-License-Identifier: AGPL-3.0-only
// What `bench` writes: the table letter by letter, the JSON field by field, the progress bar.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bench_json.hpp>
#include <bench_options.hpp>
#include <bench_result.hpp>
#include <bench_table.hpp>
#include <cstdio>
#include <exit_code.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <progress_bar.hpp>
#include <string>

namespace spark_comm::app {
namespace {

using testing::HasSubstr;
using testing::Not;

placement_result right(double median, double p99, double algorithm, std::optional<double> bus) {
  return {.wrong = 0,
          .microseconds = {.median = median, .p99 = p99},
          .speed = {.algorithm = algorithm, .bus = bus}};
}

row_result row_of(const placement_result& out_of_place, std::optional<placement_result> in_place) {
  return {
      .size_bytes = 1048576, .count = 262144, .out_of_place = out_of_place, .in_place = in_place};
}

ready_report ready() {
  return {.rank = 0,
          .world_size = 2,
          .runtime = "host",
          .description = "host runtime: NCCL 2.28.9",
          .device = "CPU",
          .driver_version = "CUDA 13.0",
          .nccl_version = "2.28.9",
          .rows = 1};
}

machine_info machine() {
  return {.host = "here",
          .processor = "Some CPU",
          .architecture = "x86_64",
          .kernel = "Linux 6.1",
          .processors = 2};
}

TEST(bench_table, a_right_row) {
  EXPECT_EQ(table_row({}, row_of(right(70.5, 91.25, 14.873, 14.873), right(7, 8, 1.5, 1.5))),
            "       1048576       262144      fp32    sum    -1"
            "      70.50      91.25    14.87    14.87        0"
            "       7.00       8.00    1.500    1.500        0\n");
}

TEST(bench_table, a_wrong_result_shows_no_time_and_no_bandwidth) {
  placement_result wrong;
  wrong.wrong = 12;
  EXPECT_EQ(table_row({}, row_of(right(70.5, 91.25, 14.873, 14.873), wrong)),
            "       1048576       262144      fp32    sum    -1"
            "      70.50      91.25    14.87    14.87        0"
            "      wrong      wrong    wrong    wrong       12\n");
}

TEST(bench_table, a_world_of_one_has_no_busbw_and_some_operations_no_form_in_place) {
  bench_options options;
  options.what = operation::send_recv;
  EXPECT_EQ(table_row(options, row_of(right(70.5, 91.25, 14.873, std::nullopt), std::nullopt)),
            "       1048576       262144      fp32   none    -1"
            "      70.50      91.25    14.87      n/a        0"
            "        n/a        n/a      n/a      n/a      n/a\n");
}

TEST(bench_table, the_root_is_shown_where_there_is_one) {
  bench_options options;
  options.what = operation::broadcast;
  options.root = 1;
  EXPECT_THAT(table_row(options, row_of(right(1, 1, 1, 1), std::nullopt)),
              HasSubstr("      fp32   none     1 "));
}

TEST(bench_table, the_header_says_what_was_measured_on_what_and_in_which_units) {
  const std::string header = table_header({}, machine(), ready());
  for (const char* const part : {"bench all_reduce",
                                 "# machine  Some CPU, 2 CPUs, x86_64, Linux 6.1\n",
                                 "# runtime  host runtime: NCCL 2.28.9\n",
                                 "# versions driver CUDA 13.0, NCCL 2.28.9\n",
                                 "# ranks    2 processes of this machine\n",
                                 "20 iterations after 5 to warm up",
                                 "GB/s (10^9 bytes a second)"}) {
    EXPECT_THAT(header, HasSubstr(part));
  }
  EXPECT_THAT(header,
              HasSubstr("#         size        count      type  redop  root"
                        "     median        p99    algbw    busbw   #wrong"
                        "     median        p99    algbw    busbw   #wrong\n"
                        "#          (B)   (elements)                       "
                        "       (us)       (us)   (GB/s)   (GB/s)         "
                        "       (us)       (us)   (GB/s)   (GB/s)\n"));
}

bench_collector collected(const bench_options& options, std::uint64_t wrong) {
  bench_collector results{options};
  for (int rank = 0; rank < options.job.ranks; ++rank) {
    for (const bool in_place : {false, true}) {
      static_cast<void>(results.add({.row = 0,
                                     .in_place = in_place,
                                     .size_bytes = 1048576,
                                     .count = 262144,
                                     .wrong = wrong,
                                     .microseconds = {100}}));
    }
  }
  return results;
}

TEST(bench_table, the_footer_judges_rows_and_link) {
  bench_options options;
  EXPECT_EQ(table_footer(options, collected(options, 0)),
            "# result   ok: every element of every rank was right\n");
  EXPECT_EQ(table_footer(options, collected(options, 1)),
            "# result   wrong: 1 of 1 sizes had wrong elements\n");
  options.link_gigabits = 200;
  EXPECT_THAT(table_footer(options, collected(options, 0)), HasSubstr("42 % of the stated link"));
}

nlohmann::json document(const bench_options& options, std::uint64_t wrong) {
  const bench_record record{.command_line = {"spark-comm", "bench"},
                            .date = "2026-12-01T05:00:00Z",
                            .machine = machine(),
                            .job = ready()};
  return nlohmann::json::parse(bench_json(options, record, collected(options, wrong)));
}

TEST(bench_json, holds_what_is_needed_to_repeat_and_compare) {
  const nlohmann::json json = document({}, 0);
  EXPECT_EQ(json["schema"], "spark-comm/bench");
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["command_line"][1], "bench");
  EXPECT_EQ(json["date"], "2026-12-01T05:00:00Z");
  EXPECT_EQ(json["machine"]["processor"], "Some CPU");
  EXPECT_EQ(json["nccl_version"], "2.28.9");
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["result"], "ok");
  ASSERT_EQ(json["rows"].size(), 1U);
  const nlohmann::json& row = json["rows"][0];
  EXPECT_EQ(row["size_bytes"], 1048576);
  EXPECT_EQ(row["type"], "fp32");
  EXPECT_EQ(row["redop"], "sum");
  EXPECT_TRUE(row["root"].is_null());
  EXPECT_EQ(row["out_of_place"]["median_us"], 100);
  EXPECT_NEAR(row["in_place"]["busbw_gb_per_s"].get<double>(), 10.48576, 1e-9);
}

TEST(bench_json, a_wrong_result_has_no_figures) {
  const nlohmann::json json = document({}, 2);
  EXPECT_EQ(json["result"], "wrong");
  const nlohmann::json& result = json["rows"][0]["out_of_place"];
  EXPECT_EQ(result["wrong"], 4);
  EXPECT_TRUE(result["median_us"].is_null());
  EXPECT_TRUE(result["busbw_gb_per_s"].is_null());
}

TEST(bench_json, a_file_is_written_whole_or_its_failure_told) {
  const std::string path = testing::TempDir() + "bench_output_test.json";
  write_file(path, "{}\n");
  std::ifstream file{path};
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>{file}, {}}), "{}\n");
  std::remove(path.c_str());
  try {
    write_file("/no/such/folder/file", "");
    FAIL();
  } catch (const failure& caught) {
    EXPECT_THAT(caught.what(), HasSubstr("/no/such/folder/file"));
    EXPECT_THAT(caught.what(), HasSubstr("No such file"));
  }
}

TEST(progress_bar, fills_up) {
  EXPECT_EQ(render_progress(0, 20, "8 B"), "[--------------------] 0/20 8 B");
  EXPECT_EQ(render_progress(8, 20, "1 MiB"), "[########------------] 8/20 1 MiB");
  EXPECT_EQ(render_progress(20, 20, ""), "[####################] 20/20 ");
  EXPECT_EQ(render_progress(0, 0, ""), "[--------------------] 0/0 ");
}

TEST(machine, knows_itself_and_reads_model_names) {
  EXPECT_EQ(model_name("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t: x\n"),
            "Some CPU @ 2 GHz");
  EXPECT_EQ(model_name("CPU part\t: 0xd85\n"), "");
  EXPECT_GE(this_machine().processors, 1);
  EXPECT_FALSE(this_machine().processor.empty());
  EXPECT_THAT(utc_now(), testing::MatchesRegex("....-..-..T..:..:..Z"));
}

}  // namespace
}  // namespace spark_comm::app
