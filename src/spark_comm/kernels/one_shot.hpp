// SPDX-License-Identifier: AGPL-3.0-only
// All-reduces inside one kernel, between ranks whose memory maps into each other.
#pragma once

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/module.hpp>
#include <spark_comm/kernels/peer_segment.hpp>
#include <spark_comm/kernels/rms_norm.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace spark_comm::kernels {

/// A rank's way to the segments of all ranks. One set of segments serves one stream: two exchanges
/// in flight at a time must not share it.
struct peer_segments {
  std::array<void*, max_world> addresses{};  ///< By rank, as mapped here; the own one included.
  segment_limits limits;                     ///< The same on all ranks.
  int rank = -1;
  exchange_status* status = nullptr;          ///< Device address of pinned memory.
  const std::uint32_t* abort_word = nullptr;  ///< Device address of pinned memory; not 0 aborts.
  duration wait_limit{};                      ///< How long a kernel waits for a peer.
};

/// Ways of an all-reduce through segments.
enum class exchange_protocol : std::uint8_t {
  low_latency,  ///< Data and flag in one word; twice the bytes, one trip.
  one_shot,     ///< Stage, flag, read everybody's; (W - 1) messages read a rank.
  two_shot,     ///< Reduce a part each, then gather; 2 (W - 1) / W messages read a rank, two trips.
};

/// The protocol for a message, from what all ranks know alike; none when it does not fit. Two ranks
/// read as much in one trip as in two, so they never take two_shot.
[[nodiscard]] SPARK_COMM_API std::optional<exchange_protocol> choose_protocol(
    std::size_t bytes, const segment_limits& limits, std::size_t two_shot_from_bytes) noexcept;

struct all_reduce_call {
  data_type dtype = data_type::bfloat16;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count_elements = 0;
};

/// out = the sum of in over all ranks.
///
/// Shape: in and out hold the same number of elements on all ranks, at any multiple of the element
/// size; equal or disjoint.
/// Order: enqueued on `s`; out is readable by work enqueued on `s` afterwards. Capturable, and a
/// graph may be replayed any number of times. When a wait runs out or abort is set, the kernel
/// ends, out is undefined, status says who was waited for, and later launches on the segment return
/// at once. Who: every rank with the same protocol, count and type, in the same order on its
/// segments. Throws: invalid_argument before enqueueing; device_failed. Numerics: fp32 sum in rank
/// order, rounded once; equal bits on all ranks, for all protocols and alignments, and on the host
/// runtime.
SPARK_COMM_API void all_reduce(const kernel_module& kernels,
                               const peer_segments& segments,
                               exchange_protocol protocol,
                               const all_reduce_call& call,
                               cuda::stream_ref s);

/// Bytes of staging that `one_shot_rms_norm` needs for T rows of H hidden elements.
[[nodiscard]] SPARK_COMM_API std::size_t rms_norm_staging_bytes(std::size_t rows,
                                                                std::size_t hidden,
                                                                data_type dtype) noexcept;

/// `all_reduce` by one_shot, then `rms_norm`, in one kernel with the same bits.
///
/// `call.partials` holds this rank's own partial only. Order, Who, Throws: as all_reduce.
SPARK_COMM_API void one_shot_rms_norm(const kernel_module& kernels,
                                      const peer_segments& segments,
                                      const rms_norm_call& call,
                                      cuda::stream_ref s);

}  // namespace spark_comm::kernels
