// SPDX-License-Identifier: AGPL-3.0-only
// How the GPU benchmarks take times.
#pragma once

#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/stream.hpp>

#include <functional>

namespace spark_comm::bench {

/// Enqueues one piece of work.
using enqueue_function = std::function<void(cuda::stream_ref)>;

/// Microseconds each of `count` pieces in a row on the device: a graph of them, launched several
/// times between two events; the median. The host's own launch time is not in it.
/// `meet` is called before every launch, so that the ranks of an exchange start together.
[[nodiscard]] double back_to_back_us(const cuda::stream& s,
                                     int count,
                                     const enqueue_function& enqueue,
                                     const std::function<void()>& meet);

/// The same with one launch call a piece and no graph, so the host's launch time limits it.
[[nodiscard]] double eager_us(const cuda::stream& s,
                              int count,
                              const enqueue_function& enqueue,
                              const std::function<void()>& meet);

/// Microseconds from enqueueing one piece until the host has seen it finish; the median of `count`.
[[nodiscard]] double synchronized_us(const cuda::stream& s,
                                     int count,
                                     const enqueue_function& enqueue);

/// Waits for the stream, 20 s at most. Throws: timed_out.
void finish(const cuda::stream& s);

}  // namespace spark_comm::bench
