// SPDX-License-Identifier: AGPL-3.0-only
#include "bench_options.hpp"

#include "exit_code.hpp"
#include "operation.hpp"
#include "quantity.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <string_view>
#include <vector>

namespace spark_comm::app {

std::string_view name_of(timing_mode mode) noexcept {
  switch (mode) {
    case timing_mode::synchronized: return "synchronized";
    case timing_mode::pipelined:    return "pipelined";
    case timing_mode::graph:        return "graph";
  }
  return "unknown";
}

std::vector<bench_row> rows_of(const bench_options& options, std::uint64_t default_max) {
  const std::uint64_t max = options.max_bytes.value_or(default_max);
  const std::size_t element = size_of(options.dtype);
  std::vector<bench_row> rows;
  for (std::uint64_t size = options.min_bytes; size <= max; size *= options.factor) {
    const std::size_t count = count_for(options.what, options.job.ranks, size, element);
    if (count > 0 && (rows.empty() || rows.back().count != count)) {
      const std::size_t larger = shape_of(options.what, options.job.ranks, count).larger();
      rows.push_back({.size_bytes = larger * element, .count = count});
    }
    if (size > max / options.factor) {
      break;
    }
  }
  if (rows.empty()) {
    throw usage_failure(
        fmt::format("no size to measure: between --min {} and --max {} none holds one {} element "
                    "for each block of {} with {} ranks",
                    options.min_bytes,
                    max,
                    name_of(options.dtype),
                    traits_of(options.what).name,
                    options.job.ranks));
  }
  return rows;
}

void validate(const job_options& options) {
  constexpr int most_ranks = 64;
  if (options.ranks < 1 || options.ranks > most_ranks) {
    throw usage_failure(fmt::format("--ranks {}: accepted are 1 to {}", options.ranks, most_ranks));
  }
  if (options.deadline < std::chrono::milliseconds{1}) {
    throw usage_failure("--deadline: accepted are spans of 1ms or longer");
  }
  if (options.limit < std::chrono::seconds{1}) {
    throw usage_failure("--limit: accepted are spans of 1s or longer");
  }
}

void validate(const bench_options& options) {
  validate(options.job);
  if (options.min_bytes < 1) {
    throw usage_failure("--min 0: accepted are sizes of 1 byte or more");
  }
  if (options.max_bytes && *options.max_bytes < options.min_bytes) {
    throw usage_failure(fmt::format("--max {} is smaller than --min {}",
                                    size_text(*options.max_bytes),
                                    size_text(options.min_bytes)));
  }
  if (options.factor < 2) {
    throw usage_failure(fmt::format("--factor {}: accepted are 2 or more", options.factor));
  }
  if (options.iterations < 1 || options.iterations > 100'000) {
    throw usage_failure(
        fmt::format("--iterations {}: accepted are 1 to 100000", options.iterations));
  }
  if (options.warmup < 0 || options.warmup > 100'000) {
    throw usage_failure(fmt::format("--warmup {}: accepted are 0 to 100000", options.warmup));
  }
  if (options.root < 0 || options.root >= options.job.ranks) {
    throw usage_failure(fmt::format("--root {}: accepted are 0 to {} with {} ranks",
                                    options.root,
                                    options.job.ranks - 1,
                                    options.job.ranks));
  }
  if (options.path && options.what != operation::all_reduce) {
    throw usage_failure(fmt::format("--path: {} goes by nccl alone; other paths are all_reduce's",
                                    traits_of(options.what).name));
  }
  if (options.link_gigabits && *options.link_gigabits <= 0) {
    throw usage_failure("--link: accepted are speeds above 0, in Gb/s");
  }
  if (traits_of(options.what).reduces && !can_reduce(options.dtype)) {
    throw usage_failure(fmt::format("{} cannot reduce {}: opaque bytes are moved, never reduced",
                                    traits_of(options.what).name,
                                    name_of(options.dtype)));
  }
}

}  // namespace spark_comm::app
