// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/detail/checks.hpp>
#include <spark_comm/kernels/detail/geometry.hpp>
#include <spark_comm/kernels/detail/kernel_table.hpp>
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/detail/rms_norm_launch.hpp>
#include <spark_comm/kernels/module.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/peer_segment.hpp>
#include <spark_comm/kernels/rms_norm.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace spark_comm::kernels {
namespace {

void check(const peer_segments& segments) {
  const segment_limits& limits = segments.limits;
  detail::require(limits.world >= 2 && limits.world <= max_world, "world must be 2 to 8");
  detail::require(segments.rank >= 0 && segments.rank < limits.world, "rank must be below world");
  detail::require(limits.staging_bytes % 256 == 0, "staging_bytes must be a multiple of 256");
  detail::require(limits.low_latency_bytes % 16 == 0, "low_latency_bytes must be a multiple of 16");
  for (int r = 0; r < limits.world; ++r) {
    detail::require_elements(segments.addresses[static_cast<std::size_t>(r)], 256, "a segment");
  }
  detail::require_elements(segments.status, alignof(exchange_status), "status");
  detail::require_elements(segments.abort_word, alignof(std::uint32_t), "the abort word");
  detail::require(segments.wait_limit > duration::zero(), "the wait limit must be positive");
}

void check(const all_reduce_call& call) {
  const std::size_t element_bytes = size_of(call.dtype);
  detail::require_elements(call.in, element_bytes, "in");
  detail::require_elements(call.out, element_bytes, "out");
  detail::require_equal_or_disjoint(call.in, call.out, call.count_elements * element_bytes);
}

detail::peer_exchange exchange_of(const peer_segments& segments) {
  detail::peer_exchange peers{};
  std::ranges::copy(segments.addresses, peers.segments);
  peers.status = segments.status;
  peers.abort_word = segments.abort_word;
  peers.wait_limit_ns = static_cast<std::uint64_t>(segments.wait_limit.count());
  peers.limits = segments.limits;
  peers.rank = segments.rank;
  return peers;
}

detail::input_count inputs_of(const segment_limits& limits) {
  return limits.world == 2 ? detail::input_count::two : detail::input_count::any;
}

// How one protocol is launched.
struct protocol_launch {
  detail::kernel_family family;
  detail::input_count inputs;
  detail::launch_shape shape;
  std::size_t vector;  // alignment of user memory for its wide accesses
  std::size_t limit;   // largest message
};

protocol_launch launch_of(exchange_protocol protocol,
                          std::size_t bytes,
                          const segment_limits& limits) {
  switch (protocol) {
    case exchange_protocol::low_latency:
      return {detail::kernel_family::low_latency,
              detail::input_count::any,
              detail::low_latency_shape(bytes),
              line_data_bytes,
              limits.low_latency_bytes};
    case exchange_protocol::one_shot:
      return {detail::kernel_family::one_shot,
              inputs_of(limits),
              detail::exchange_shape(bytes),
              16,
              limits.staging_bytes};
    case exchange_protocol::two_shot: break;
  }
  // Each block walks through one part a rank, so the parts decide how many blocks there are.
  const auto world = static_cast<std::size_t>(limits.world);
  return {detail::kernel_family::two_shot,
          detail::input_count::any,
          detail::exchange_shape(bytes / world + 1),
          16,
          limits.staging_bytes};
}

}  // namespace

std::optional<exchange_protocol> choose_protocol(std::size_t bytes,
                                                 const segment_limits& limits,
                                                 std::size_t two_shot_from_bytes) noexcept {
  if (bytes <= limits.low_latency_bytes) {
    return exchange_protocol::low_latency;
  }
  if (bytes > limits.staging_bytes) {
    return std::nullopt;
  }
  return limits.world > 2 && bytes >= two_shot_from_bytes ? exchange_protocol::two_shot
                                                          : exchange_protocol::one_shot;
}

void all_reduce(const kernel_module& kernels,
                const peer_segments& segments,
                exchange_protocol protocol,
                const all_reduce_call& call,
                cuda::stream_ref s) {
  check(segments);
  detail::require_kernel_type(call.dtype);
  if (call.count_elements == 0) {
    return;
  }
  check(call);
  const std::size_t bytes = call.count_elements * size_of(call.dtype);
  const protocol_launch launch = launch_of(protocol, bytes, segments.limits);
  detail::require(bytes <= launch.limit, "the message is larger than the segment's limit");

  const std::array<const void*, 2> addresses = {call.in, call.out};
  const detail::all_reduce_parameters parameters{
      .peers = exchange_of(segments),
      .input = call.in,
      .output = call.out,
      .count_elements = call.count_elements,
      .is_wide = detail::are_aligned(addresses, launch.vector) ? 1U : 0U};
  kernels.launch({.family = launch.family, .dtype = call.dtype, .inputs = launch.inputs},
                 launch.shape,
                 parameters,
                 s);
}

std::size_t rms_norm_staging_bytes(std::size_t rows, std::size_t hidden, data_type dtype) noexcept {
  return rows * detail::staged_row_bytes(hidden, size_of(dtype));
}

void one_shot_rms_norm(const kernel_module& kernels,
                       const peer_segments& segments,
                       const rms_norm_call& call,
                       cuda::stream_ref s) {
  check(segments);
  detail::require(call.partials.size() == 1, "one_shot_rms_norm takes the rank's own partial only");
  detail::check(call);
  if (call.rows == 0) {
    return;
  }
  detail::require(
      rms_norm_staging_bytes(call.rows, call.hidden, call.dtype) <= segments.limits.staging_bytes,
      "the rows are larger than the segment's limit");
  detail::launch_shape shape = detail::norm_shape(call.hidden);
  shape.blocks = static_cast<std::uint32_t>(std::min<std::size_t>(call.rows, max_exchange_blocks));
  kernels.launch({.family = detail::kernel_family::one_shot_rms_norm,
                  .dtype = call.dtype,
                  .inputs = inputs_of(segments.limits),
                  .variant = shape.variant},
                 shape,
                 detail::all_reduce_rms_norm_parameters{.peers = exchange_of(segments),
                                                        .norm = detail::parameters_of(call)},
                 s);
}

}  // namespace spark_comm::kernels
