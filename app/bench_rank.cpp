// SPDX-License-Identifier: AGPL-3.0-only
#include "bench_rank.hpp"

#include "bench_options.hpp"
#include "exit_code.hpp"
#include "memory_estimate.hpp"
#include "operation.hpp"
#include "operation_call.hpp"
#include "rank_buffer.hpp"
#include "rank_report.hpp"
#include "rank_session.hpp"
#include "reference.hpp"

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/cuda/graph.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/paths/path_of.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <ratio>
#include <span>
#include <utility>
#include <vector>

namespace spark_comm::app {
namespace {

/// What an output holds before the operation, so that one that was not written shows.
constexpr std::uint8_t poison = 0xee;

std::vector<bench_row> rows_on(const bench_options& options, runtime_kind loaded) {
  return rows_of(options, loaded == runtime_kind::host ? default_max_host : default_max_nvidia);
}

class bench_rank {
 public:
  bench_rank(const bench_options& options, communicator& comm, std::size_t largest_count)
      : options_(options),
        comm_(comm),
        stream_(comm.device().create_stream()),
        through_(comm.device(), options.job.deadline),
        element_bytes_(size_of(options.dtype)),
        data_({.dtype = options.dtype,
               .op = traits_of(options.what).reduces ? std::optional{options.op} : std::nullopt,
               .world_size = comm.world_size()}),
        in_(allocate(shape_of(options.what, comm.world_size(), largest_count).input)),
        out_(allocate(shape_of(options.what, comm.world_size(), largest_count).output)) {}

  /// Right first, fast second: a wrong result is reported without times.
  [[nodiscard]] measured_report measure(std::size_t row, const bench_row& size, bool in_place) {
    const operation_call call = call_for(size.count, in_place);
    measured_report report{.row = row,
                           .in_place = in_place,
                           .size_bytes = size.size_bytes,
                           .count = size.count,
                           .wrong = wrong_of(call, in_place),
                           .microseconds = {}};
    // Every rank takes part in the timing whether its own result is right or not: the others wait.
    std::vector<double> times = options_.mode == timing_mode::synchronized ? time_synchronized(call)
                                : options_.mode == timing_mode::pipelined  ? time_pipelined(call)
                                                                           : time_graph(call);
    if (!in_place) {
      // The inputs are as they were: a result that goes wrong only at speed shows here.
      report.wrong += compare(call);
    }
    if (report.wrong == 0) {
      report.microseconds = std::move(times);
    }
    return report;
  }

 private:
  [[nodiscard]] cuda::device_buffer allocate(std::size_t elements) const {
    return cuda::device_buffer::allocate(comm_.device(), elements * element_bytes_);
  }

  /// In place, input and output lie in the larger of the two buffers.
  [[nodiscard]] operation_call call_for(std::size_t count, bool in_place) const {
    auto* in = static_cast<std::byte*>(in_.address());
    auto* out = static_cast<std::byte*>(out_.address());
    if (in_place) {
      std::byte* const larger = traits_of(options_.what).scatters_input ? in : out;
      const in_place_offsets offsets = in_place_of(options_.what, comm_.rank(), count);
      in = larger + offsets.input * element_bytes_;
      out = larger + offsets.output * element_bytes_;
    }
    return {.what = options_.what,
            .in = in,
            .out = out,
            .count = count,
            .dtype = options_.dtype,
            .op = options_.op,
            .root = options_.root};
  }

  [[nodiscard]] std::size_t wrong_of(const operation_call& call, bool in_place) {
    const buffer_shape shape = shape_of(call.what, comm_.world_size(), call.count);
    const bool input_lies_in_output = in_place && shape.output >= shape.input;
    if (!in_place || input_lies_in_output) {
      through_.fill(call.out, poison, shape.output * element_bytes_);
    }
    auto* const in = static_cast<std::byte*>(const_cast<void*>(call.in));  // our own buffer
    through_.write(in, shape.input * element_bytes_, [&](std::size_t offset, auto piece) {
      data_.fill_input(comm_.rank(), offset / element_bytes_, piece);
    });
    enqueue(comm_, call, stream_);
    drain(comm_, stream_, options_.job.deadline, call.what);
    return compare(call);
  }

  [[nodiscard]] std::size_t compare(const operation_call& call) {
    const placement where{
        .rank = comm_.rank(), .world_size = comm_.world_size(), .root = options_.root};
    const std::vector<result_segment> expected = expected_result(call.what, where, call.count);
    return count_wrong(
        through_, data_, expected, static_cast<const std::byte*>(call.out), element_bytes_);
  }

  /// Microseconds from the first call until the stream is drained.
  [[nodiscard]] double time_batch(const operation_call& call, int operations) {
    const auto began = std::chrono::steady_clock::now();
    for (int number = 0; number < operations; ++number) {
      enqueue(comm_, call, stream_);
    }
    drain(comm_, stream_, options_.job.deadline, call.what);
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - began;
    return taken.count();
  }

  [[nodiscard]] std::vector<double> time_synchronized(const operation_call& call) {
    std::vector<double> times;
    for (int number = 0; number < options_.warmup + options_.iterations; ++number) {
      const double time = time_batch(call, 1);
      if (number >= options_.warmup) {
        times.push_back(time);
      }
    }
    return times;
  }

  [[nodiscard]] std::vector<double> time_pipelined(const operation_call& call) {
    static_cast<void>(time_batch(call, options_.warmup));
    std::vector<double> times;
    times.reserve(pipelined_batches);
    for (int batch = 0; batch < pipelined_batches; ++batch) {
      times.push_back(time_batch(call, options_.iterations) / options_.iterations);
    }
    return times;
  }

  [[nodiscard]] std::vector<double> time_graph(const operation_call& call) {
    static_cast<void>(time_batch(call, options_.warmup));
    cuda::capture_scope capture{comm_.device(), stream_};
    for (int number = 0; number < options_.iterations; ++number) {
      enqueue(comm_, call, stream_);
    }
    const cuda::graph recorded = capture.end();
    const cuda::graph_exec graph = recorded.instantiate();
    std::vector<double> times;
    for (int batch = 0; batch <= pipelined_batches; ++batch) {
      const auto began = std::chrono::steady_clock::now();
      graph.launch(stream_);
      drain(comm_, stream_, options_.job.deadline, call.what);
      const std::chrono::duration<double, std::micro> taken =
          std::chrono::steady_clock::now() - began;
      if (batch > 0) {  // the first launch also uploads the graph
        times.push_back(taken.count() / options_.iterations);
      }
    }
    return times;
  }

  const bench_options& options_;
  communicator& comm_;
  cuda::stream stream_;
  staging through_;
  std::size_t element_bytes_;
  reference data_;
  cuda::device_buffer in_;
  cuda::device_buffer out_;
};

// What `path_options` accepts at most.
constexpr std::uint64_t largest_path_bytes = std::uint64_t{256} << 20U;

/// Numbers of another path than the one asked for would mislead.
void require_path(const communicator& comm,
                  const bench_options& options,
                  const bench_row& largest) {
  const path_kind taken = path_of(comm,
                                  {.dtype = options.dtype,
                                   .op = options.op,
                                   .bytes = largest.size_bytes,
                                   .staging_bytes = largest.size_bytes});
  if (taken != *options.path && taken != path_kind::local) {
    throw failure(exit_code::not_available,
                  fmt::format("--path {}: sums of {} of {} bytes go by {} here; try a lower --max",
                              name_of(*options.path),
                              name_of(options.dtype),
                              largest.size_bytes,
                              name_of(taken)));
  }
}

}  // namespace

void run_bench_rank(const bench_options& options) {
  std::vector<bench_row> rows;
  job_options job = options.job;
  if (options.path) {
    // The sizes are not known before the runtime is: buffers as large as they may be at most.
    job.paths = {
        .table = fmt::format("spark-comm-paths 1\nall_reduce * * * {}\n", name_of(*options.path)),
        .max_bytes =
            std::min(options.max_bytes.value_or(std::uint64_t{1} << 20U), largest_path_bytes),
        .max_streams = 1};
  }
  rank_session session = join_job(job, [&](runtime_kind loaded) -> rank_plan {
    rows = rows_on(options, loaded);
    return {.rows = rows.size(),
            .buffer_bytes =
                buffer_bytes(options.what, options.job.ranks, rows.back().count, options.dtype) +
                staging::capacity};
  });
  if (options.path) {
    require_path(session.comm, options, rows.back());
  }
  bench_rank bench{options, session.comm, rows.back().count};
  const bool has_in_place = traits_of(options.what).has_in_place;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    send_report(bench.measure(row, rows[row], false));
    if (has_in_place) {
      send_report(bench.measure(row, rows[row], true));
    }
  }
  session.comm.close(options.job.deadline);
}

}  // namespace spark_comm::app
