// SPDX-License-Identifier: AGPL-3.0-only
// Send and receive: a ring of slots for each ordered pair of ranks. An empty message is a real one:
// it takes a step of its own.
#include "board.hpp"
#include "collectives.hpp"
#include "communicator.hpp"
#include "segment_layout.hpp"
#include "stopping_wait.hpp"
#include "task.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace spark_comm::host::nccl {

task send(communicator& comm, const operation& op) {
  channel_lines& lines = comm.channel(comm.rank(), op.peer);
  const pieces cut{.bytes = op.bytes(), .piece = channel_slot_bytes};
  // Relaxed: the own counter, written by this rank's launches alone.
  std::uint64_t step = lines.sent.value.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < std::max<std::size_t>(cut.count(), 1); ++i, ++step) {
    const bool goes_on = co_await unless_stopped(comm, [&lines, step] {
      // Acquire: the receiver has read the slot before it is overwritten.
      return lines.received.value.load(std::memory_order_acquire) + channel_slot_count > step;
    });
    if (!goes_on) {
      co_return;
    }
    copy_bytes(comm.channel_slot(comm.rank(), op.peer, step), op.in + cut.begin(i), cut.length(i));
    // Release: the slot's bytes before the counter.
    lines.sent.value.store(step + 1, std::memory_order_release);
  }
}

task recv(communicator& comm, const operation& op) {
  channel_lines& lines = comm.channel(op.peer, comm.rank());
  const pieces cut{.bytes = op.bytes(), .piece = channel_slot_bytes};
  // Relaxed: the own counter, written by this rank's launches alone.
  std::uint64_t step = lines.received.value.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < std::max<std::size_t>(cut.count(), 1); ++i, ++step) {
    const bool goes_on = co_await unless_stopped(comm, [&lines, step] {
      // Acquire: what the sender wrote is visible.
      return lines.sent.value.load(std::memory_order_acquire) > step;
    });
    if (!goes_on) {
      co_return;
    }
    copy_bytes(op.out + cut.begin(i), comm.channel_slot(op.peer, comm.rank(), step), cut.length(i));
    // Release: the read before the counter.
    lines.received.value.store(step + 1, std::memory_order_release);
  }
}

}  // namespace spark_comm::host::nccl
