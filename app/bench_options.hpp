// SPDX-License-Identifier: AGPL-3.0-only
// What `bench` can be asked for.
#pragma once

#include "operation.hpp"

#include <spark_comm/comm/path_options.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::app {

/// How time is taken.
enum class timing_mode : std::uint8_t {
  synchronized,  ///< Each operation alone: from its call until the stream is drained.
  pipelined,     ///< Operations back to back, one wait for all; a batch's time over its operations.
  graph,         ///< As pipelined, with each batch captured once and replayed as a graph.
};

[[nodiscard]] std::string_view name_of(timing_mode mode) noexcept;

/// Which runtime a job runs on, and how many processes of this machine take part.
struct job_options {
  runtime_kind runtime = runtime_kind::automatic;
  std::string nccl_library;  ///< Path; empty: the library's own choice.
  int ranks = 2;
  bool share_gpu = false;             ///< Several ranks may use one GPU.
  std::optional<path_options> paths;  ///< Empty: the library's own choice.
  /// Of the join and of every operation.
  duration deadline = std::chrono::seconds{30};
  /// Of the whole run.
  duration limit = std::chrono::minutes{10};
};

/// Unit: sizes in bytes.
struct bench_options {
  job_options job;
  operation what = operation::all_reduce;
  std::uint64_t min_bytes = 8;
  /// Empty: 64 MiB on GPUs, 16 MiB on the host runtime.
  std::optional<std::uint64_t> max_bytes;
  std::uint64_t factor = 2;
  data_type dtype = data_type::float32;
  reduce_op op = reduce_op::sum;
  int root = 0;
  int iterations = 20;
  int warmup = 5;
  timing_mode mode = timing_mode::synchronized;
  std::optional<path_kind> path;        ///< Of the operation; empty: the library's choice.
  std::optional<double> link_gigabits;  ///< Speed of the link, to judge the result by.
  std::string json_file;                ///< Empty: none is written.
};

/// Batches of `iterations` operations that the pipelined mode times.
inline constexpr int pipelined_batches = 10;

inline constexpr std::uint64_t default_max_nvidia = 64ULL << 20U;
inline constexpr std::uint64_t default_max_host = 16ULL << 20U;

/// One size to measure.
struct bench_row {
  std::uint64_t size_bytes = 0;  ///< Of the larger buffer.
  std::size_t count = 0;         ///< Elements a block.
};

/// The sizes from smallest to largest; sizes too small for one element a block are left out.
/// Throws: failure (usage) when no size is left.
[[nodiscard]] std::vector<bench_row> rows_of(const bench_options& options,
                                             std::uint64_t default_max);

/// Throws: failure (usage) naming the option, its value and what is accepted.
void validate(const bench_options& options);
void validate(const job_options& options);

}  // namespace spark_comm::app
