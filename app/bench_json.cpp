// SPDX-License-Identifier: AGPL-3.0-only
#include "bench_json.hpp"

#include "bench_options.hpp"
#include "bench_result.hpp"
#include "build_info.hpp"
#include "exit_code.hpp"
#include "operation.hpp"
#include "rank_report.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <ios>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>

namespace spark_comm::app {
namespace {

using json = nlohmann::ordered_json;

json placement_json(const std::optional<placement_result>& result) {
  if (!result) {
    return nullptr;
  }
  json object = {{"wrong", result->wrong},
                 {"median_us", nullptr},
                 {"p99_us", nullptr},
                 {"algbw_gb_per_s", nullptr},
                 {"busbw_gb_per_s", nullptr}};
  if (result->is_right()) {
    object["median_us"] = result->microseconds.median;
    object["p99_us"] = result->microseconds.p99;
    object["algbw_gb_per_s"] = result->speed.algorithm;
    if (result->speed.bus) {
      object["busbw_gb_per_s"] = *result->speed.bus;
    }
  }
  return object;
}

json row_json(const bench_options& options, const row_result& row) {
  const operation_traits& traits = traits_of(options.what);
  return {{"size_bytes", row.size_bytes},
          {"count", row.count},
          {"type", name_of(options.dtype)},
          {"redop", traits.reduces ? json(name_of(options.op)) : json(nullptr)},
          {"root", traits.has_root ? json(options.root) : json(nullptr)},
          {"out_of_place", placement_json(row.out_of_place)},
          {"in_place", placement_json(row.in_place)}};
}

}  // namespace

std::string bench_json(const bench_options& options,
                       const bench_record& record,
                       const bench_collector& results) {
  json rows = json::array();
  for (const row_result& row : results.rows()) {
    rows.push_back(row_json(options, row));
  }
  const json document = {{"schema", "spark-comm/bench"},
                         {"schema_version", bench_schema_version},
                         {"version", build_version()},
                         {"commit", build_commit()},
                         {"command_line", record.command_line},
                         {"date", record.date},
                         {"machine",
                          {{"host", record.machine.host},
                           {"processor", record.machine.processor},
                           {"processors", record.machine.processors},
                           {"architecture", record.machine.architecture},
                           {"kernel", record.machine.kernel}}},
                         {"runtime", record.job.runtime},
                         {"runtime_description", record.job.description},
                         {"device", record.job.device},
                         {"driver_version", record.job.driver_version},
                         {"nccl_version", record.job.nccl_version},
                         {"operation", traits_of(options.what).name},
                         {"ranks", record.job.world_size},
                         {"mode", name_of(options.mode)},
                         {"iterations", options.iterations},
                         {"warmup", options.warmup},
                         {"result", results.is_right() ? "ok" : "wrong"},
                         {"rows", rows}};
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

void write_file(const std::string& path, const std::string& content) {
  const std::string beside = path + ".part";
  const auto fail = [&] {
    return failure(
        exit_code::failed,
        fmt::format("cannot write {}: {}", path, std::generic_category().message(errno)));
  };
  errno = 0;
  {
    std::ofstream file{beside, std::ios::binary};
    file << content;
    file.close();
    if (!file) {
      throw fail();
    }
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) {
    throw fail();
  }
}

}  // namespace spark_comm::app
