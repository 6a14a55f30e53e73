// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/collectives/all_to_all.hpp>
#include <spark_comm/collectives/detail/check.hpp>
#include <spark_comm/collectives/detail/submit.hpp>
#include <spark_comm/collectives/recv.hpp>
#include <spark_comm/collectives/send.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/group.hpp>
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/nccl/library.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <span>
#include <vector>

namespace spark_comm {
namespace {

launch_result launch_all_to_all(const nccl::api& call,
                                nccl::abi::comm comm,
                                const operation& op) noexcept {
  return {call.ncclAlltoAll(op.in,
                            op.out,
                            op.record.count_elements,
                            detail::moved_type(op.record.dtype),
                            comm,
                            op.stream),
          "ncclAlltoAll"};
}

const void* at(const void* base, std::size_t offset_bytes) noexcept {
  return base == nullptr ? nullptr : static_cast<const std::byte*>(base) + offset_bytes;
}

void* at(void* base, std::size_t offset_bytes) noexcept {
  return base == nullptr ? nullptr : static_cast<std::byte*>(base) + offset_bytes;
}

// Sends and receives everything in one group, the own block included: NCCL allows a rank to send to
// itself inside a group.
void exchange_blocks(communicator& comm,
                     const void* in,
                     void* out,
                     const all_to_all_layout& layout,
                     data_type dtype,
                     cuda::stream_ref s,
                     const call_options& options) {
  const std::size_t element = size_of(dtype);
  group_scope group{comm};
  for (int peer = 0; peer < comm.world_size(); ++peer) {
    const auto p = static_cast<std::size_t>(peer);
    send(comm,
         at(in, layout.send_offsets[p] * element),
         layout.send_counts[p],
         dtype,
         rank_id{peer},
         s,
         options);
    recv(comm,
         at(out, layout.recv_offsets[p] * element),
         layout.recv_counts[p],
         dtype,
         rank_id{peer},
         s,
         options);
  }
  group.commit();
}

// The bytes that a layout reaches; checks that no block's end overflows.
std::size_t reach_bytes(const detail::argument_check& check,
                        std::span<const std::size_t> counts,
                        std::span<const std::size_t> offsets,
                        data_type dtype) {
  std::size_t reach = 0;
  for (std::size_t block = 0; block < counts.size(); ++block) {
    std::size_t end = 0;
    if (__builtin_add_overflow(counts[block], offsets[block], &end) ||
        __builtin_mul_overflow(end, size_of(dtype), &end)) {
      check.fail(fmt::format(
          "block {}: {} elements at offset {} overflow", block, counts[block], offsets[block]));
    }
    reach = std::max(reach, counts[block] == 0 ? 0 : end);
  }
  return reach;
}

}  // namespace

void all_to_all(communicator& comm,
                const void* in,
                void* out,
                std::size_t count_elements,
                data_type dtype,
                cuda::stream_ref s,
                const call_options& options) {
  const auto world = static_cast<std::size_t>(comm.world_size());
  const detail::argument_check check{
      comm.core(), operation_kind::all_to_all, count_elements, dtype};
  const std::size_t all_bytes = check.bytes(world);
  check.require_buffer("in", in, all_bytes);
  check.require_buffer("out", out, all_bytes);
  check.require_disjoint(in, all_bytes, out, all_bytes);
  if (!comm.loaded_runtime().library().supports(nccl::capability::all_to_all) &&
      comm.world_size() > 1 && count_elements > 0) {
    const std::vector<std::size_t> counts(world, count_elements);
    std::vector<std::size_t> offsets(world);
    for (std::size_t block = 0; block < world; ++block) {
      offsets[block] = block * count_elements;
    }
    exchange_blocks(comm, in, out, {counts, offsets, counts, offsets}, dtype, s, options);
    return;
  }
  detail::submit_collective(comm,
                            {.record = {.count_elements = count_elements,
                                        .kind = operation_kind::all_to_all,
                                        .dtype = dtype},
                             .in = in,
                             .out = out,
                             .stream = s.get(),
                             .deadline = options.deadline,
                             .launch = launch_all_to_all});
}

void all_to_all(communicator& comm,
                const void* in,
                void* out,
                const all_to_all_layout& layout,
                data_type dtype,
                cuda::stream_ref s,
                const call_options& options) {
  const auto world = static_cast<std::size_t>(comm.world_size());
  const detail::argument_check check{comm.core(), operation_kind::all_to_all, 0, dtype};
  for (const auto& part :
       {layout.send_counts, layout.send_offsets, layout.recv_counts, layout.recv_offsets}) {
    if (part.size() != world) {
      check.fail(fmt::format("the layout has {} entries for {} ranks", part.size(), world));
    }
  }
  const std::size_t in_bytes = reach_bytes(check, layout.send_counts, layout.send_offsets, dtype);
  const std::size_t out_bytes = reach_bytes(check, layout.recv_counts, layout.recv_offsets, dtype);
  check.require_buffer("in", in, in_bytes);
  check.require_buffer("out", out, out_bytes);
  check.require_disjoint(in, in_bytes, out, out_bytes);
  const auto self = static_cast<std::size_t>(comm.rank());
  if (layout.send_counts[self] != layout.recv_counts[self]) {
    check.fail(fmt::format("this rank sends itself {} elements and expects {}",
                           layout.send_counts[self],
                           layout.recv_counts[self]));
  }
  exchange_blocks(comm, in, out, layout, dtype, s, options);
}

}  // namespace spark_comm
