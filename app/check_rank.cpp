// SPDX-License-Identifier: AGPL-3.0-only
#include "check_rank.hpp"

#include "bench_options.hpp"
#include "check_case.hpp"
#include "exit_code.hpp"
#include "operation.hpp"
#include "operation_call.hpp"
#include "rank_report.hpp"
#include "rank_session.hpp"
#include "reference.hpp"

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spark_comm::app {
namespace {

/// Failures that are told in words; the rest only counts.
constexpr std::size_t most_failures_told = 5;

/// FNV-1a, to compare ranks' results without moving them.
std::uint64_t digest(std::uint64_t hash, std::span<const std::byte> bytes) noexcept {
  for (const std::byte value : bytes) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x100000001b3U;
  }
  return hash;
}

/// Whether every rank must end with the same bits.
bool is_alike_on_all_ranks(operation what) noexcept {
  return what == operation::all_reduce || what == operation::broadcast ||
         what == operation::all_gather;
}

class check_rank {
 public:
  check_rank(const job_options& options, communicator& comm)
      : options_(options),
        comm_(comm),
        stream_(comm.device().create_stream()),
        memory_(cuda::device_buffer::allocate(comm.device(),
                                              check_image::largest_bytes(comm.world_size()))),
        before_(memory_.size_bytes()),
        after_(memory_.size_bytes()) {}

  [[nodiscard]] checked_report check(operation what) {
    report_ = {};
    report_.operation = traits_of(what).name;
    report_.digest = 0xcbf29ce484222325U;
    for (const data_type dtype : all_data_types) {
      for (const std::optional<reduce_op> op : check_ops(what)) {
        const reference data{{.dtype = dtype, .op = op, .world_size = comm_.world_size()}};
        for (const check_case& one : check_cases(what, dtype, op, comm_.world_size())) {
          check(one, data);
        }
      }
    }
    return report_;
  }

 private:
  void check(const check_case& one, const reference& data) {
    const placement where{.rank = comm_.rank(), .world_size = comm_.world_size(), .root = one.root};
    const check_image image{one, where};
    const std::span<std::byte> before = std::span{before_}.first(image.size_bytes());
    image.fill(data, before);
    const std::optional<std::string> refusal = run(one, image);
    const bool must_refuse = one.op && !can_reduce(one.dtype);
    if (refusal && must_refuse) {
      ++report_.passed;
    } else if (refusal) {
      ++report_.not_supported[fmt::format("{}: {}", name_of(one.dtype), *refusal)];
    } else if (must_refuse) {
      fail(one, "opaque bytes were reduced");
    } else {
      judge(one, image, data);
    }
  }

  /// Copies the block there, runs the operation, copies it back. The text when it was refused.
  [[nodiscard]] std::optional<std::string> run(const check_case& one, const check_image& image) {
    auto* const block = static_cast<std::byte*>(memory_.address());
    const cuda::device& device = comm_.device();
    cuda::copy_async(device, block, before_.data(), image.size_bytes(), stream_);
    std::optional<std::string> refusal;
    try {
      enqueue(comm_,
              {.what = one.what,
               .in = block + image.input(),
               .out = block + image.output(),
               .count = one.count,
               .dtype = one.dtype,
               .op = one.op.value_or(reduce_op::sum),
               .root = one.root},
              stream_);
    } catch (const error& caught) {
      // Refused before anything was enqueued: the same on every rank, and no harm done.
      if (caught.kind() != errc::not_supported && caught.kind() != errc::invalid_argument) {
        throw;
      }
      refusal = caught.message();
    }
    cuda::copy_async(device, after_.data(), block, image.size_bytes(), stream_);
    drain(comm_, stream_, options_.deadline, one.what);
    return refusal;
  }

  void judge(const check_case& one, const check_image& image, const reference& data) {
    const std::span<const std::byte> after = std::span{after_}.first(image.size_bytes());
    const std::string verdict = image.verdict(data, after);
    if (!verdict.empty()) {
      fail(one, verdict);
      return;
    }
    ++report_.passed;
    if (is_alike_on_all_ranks(one.what)) {
      report_.digest = digest(report_.digest, image.output_of(after));
    }
  }

  void fail(const check_case& one, const std::string& verdict) {
    ++report_.failed;
    if (report_.failures.size() < most_failures_told) {
      report_.failures.push_back(
          fmt::format("{}: {} on rank {}", to_text(one), verdict, comm_.rank()));
    }
  }

  const job_options& options_;
  communicator& comm_;
  cuda::stream stream_;
  cuda::device_buffer memory_;
  std::vector<std::byte> before_;
  std::vector<std::byte> after_;
  checked_report report_;
};

}  // namespace

void run_check_rank(const job_options& options) {
  rank_session session = join_job(options, [&](runtime_kind) -> rank_plan {
    return {.rows = std::size(all_operations),
            .buffer_bytes = 3 * check_image::largest_bytes(options.ranks)};
  });
  check_rank check{options, session.comm};
  for (const operation what : all_operations) {
    send_report(check.check(what));
  }
  session.comm.close(options.deadline);
}

}  // namespace spark_comm::app
