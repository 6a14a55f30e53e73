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

#include <algorithm>
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

/// Cases of one type and reduction, side by side in memory, so that they travel in one copy and are
/// waited for once.
class check_batch {
 public:
  explicit check_batch(const placement& where) : where_(where) {}

  void add(const check_case& one) {
    const placement here{.rank = where_.rank, .world_size = where_.world_size, .root = one.root};
    const std::size_t begin = size_bytes();
    entries_.push_back({.one = one, .image = {one, here}, .begin = begin, .refusal = {}});
  }

  [[nodiscard]] std::size_t size_bytes() const noexcept {
    constexpr std::size_t alignment = 256;
    const std::size_t end =
        entries_.empty() ? 0 : entries_.back().begin + entries_.back().image.size_bytes();
    return (end + alignment - 1) / alignment * alignment;
  }

  struct entry {
    check_case one;
    check_image image;
    std::size_t begin = 0;
    std::optional<std::string> refusal;  ///< The library's words, when it refused the call.

    [[nodiscard]] std::span<std::byte> in(std::byte* memory) const {
      return {memory + begin, image.size_bytes()};
    }
  };

  [[nodiscard]] std::vector<entry>& entries() noexcept { return entries_; }

 private:
  placement where_;
  std::vector<entry> entries_;
};

class check_rank {
 public:
  check_rank(const job_options& options, communicator& comm)
      : options_(options),
        comm_(comm),
        stream_(comm.device().create_stream()),
        device_memory_(
            cuda::device_buffer::allocate(comm.device(), batch_bytes(comm.world_size()))),
        before_(cuda::pinned_buffer::allocate(comm.device(), batch_bytes(comm.world_size()))),
        after_(cuda::pinned_buffer::allocate(comm.device(), batch_bytes(comm.world_size()))) {}

  /// Bytes that the largest batch needs on the device, and twice on the host.
  [[nodiscard]] static std::size_t batch_bytes(int world_size) {
    return check_image::largest_bytes(world_size) * most_cases_at_once;
  }

  [[nodiscard]] checked_report check(operation what) {
    report_ = {};
    report_.operation = traits_of(what).name;
    report_.digest = 0xcbf29ce484222325U;
    for (const data_type dtype : all_data_types) {
      for (const std::optional<reduce_op> op : check_ops(what)) {
        const reference data{{.dtype = dtype, .op = op, .world_size = comm_.world_size()}};
        const std::vector<check_case> cases = check_cases(what, dtype, op, comm_.world_size());
        for (std::size_t first = 0; first < cases.size(); first += most_cases_at_once) {
          check(std::span{cases}.subspan(first, std::min(most_cases_at_once, cases.size() - first)),
                data);
        }
      }
    }
    return report_;
  }

 private:
  static constexpr std::size_t most_cases_at_once = 12;

  void check(std::span<const check_case> cases, const reference& data) {
    check_batch batch{{.rank = comm_.rank(), .world_size = comm_.world_size(), .root = 0}};
    for (const check_case& one : cases) {
      batch.add(one);
    }
    run(batch, data);
    for (const check_batch::entry& entry : batch.entries()) {
      judge(entry, data);
    }
  }

  /// Copies the batch there, runs every operation, copies it back.
  void run(check_batch& batch, const reference& data) {
    const cuda::device& device = comm_.device();
    for (const check_batch::entry& entry : batch.entries()) {
      entry.image.fill(data, entry.in(before_.as<std::byte>()));
    }
    const std::size_t bytes = batch.size_bytes();
    cuda::copy_async(device, device_memory_.address(), before_.address(), bytes, stream_);
    for (check_batch::entry& entry : batch.entries()) {
      call(entry);
    }
    cuda::copy_async(device, after_.address(), device_memory_.address(), bytes, stream_);
    drain(comm_, stream_, options_.deadline, batch.entries().front().one.what);
  }

  void call(check_batch::entry& entry) {
    const check_case& one = entry.one;
    std::byte* const block = static_cast<std::byte*>(device_memory_.address()) + entry.begin;
    try {
      enqueue(comm_,
              {.what = one.what,
               .in = block + entry.image.input(),
               .out = block + entry.image.output(),
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
      entry.refusal = caught.message();
    }
  }

  void judge(const check_batch::entry& entry, const reference& data) {
    const check_case& one = entry.one;
    const bool must_refuse = one.op && !can_reduce(one.dtype);
    if (entry.refusal && !must_refuse) {
      ++report_.not_supported[fmt::format("{}: {}", name_of(one.dtype), *entry.refusal)];
      return;
    }
    if (!entry.refusal && must_refuse) {
      fail(one, "opaque bytes were reduced");
      return;
    }
    const std::span<const std::byte> after = entry.in(after_.as<std::byte>());
    const std::span<const std::byte> before = entry.in(before_.as<std::byte>());
    const std::string verdict =
        must_refuse ? (std::ranges::equal(before, after) ? "" : "a refused call changed memory")
                    : entry.image.verdict(data, after);
    if (!verdict.empty()) {
      fail(one, verdict);
      return;
    }
    ++report_.passed;
    if (!must_refuse && is_alike_on_all_ranks(one.what)) {
      report_.digest = digest(report_.digest, entry.image.output_of(after));
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
  cuda::device_buffer device_memory_;
  cuda::pinned_buffer before_;
  cuda::pinned_buffer after_;
  checked_report report_;
};

}  // namespace

void run_check_rank(const job_options& options) {
  rank_session session = join_job(options, [&](runtime_kind) -> rank_plan {
    return {.rows = std::size(all_operations),
            .buffer_bytes = 3 * check_rank::batch_bytes(options.ranks)};
  });
  check_rank check{options, session.comm};
  for (const operation what : all_operations) {
    send_report(check.check(what));
  }
  session.comm.close(options.deadline);
}

}  // namespace spark_comm::app
