// SPDX-License-Identifier: AGPL-3.0-only
// Scatter and all-to-all: a slot holds one part for each rank, and each takes its own.
#include "board.hpp"
#include "collectives.hpp"
#include "communicator.hpp"
#include "task.hpp"

#include <cstddef>

namespace spark_comm::host::nccl {
namespace {

// Shows piece i of every rank's block.
void fill_parts(const board& b, const operation& op, const pieces& cut, std::size_t i) noexcept {
  for (int rank = 0; rank < b.ranks(); ++rank) {
    const auto block = static_cast<std::size_t>(rank);
    copy_bytes(b.slot(b.rank()) + block * cut.piece,
               op.in + block * op.bytes() + cut.begin(i),
               cut.length(i));
  }
}

const std::byte* own_part(const board& b, int from, const pieces& cut) noexcept {
  return b.slot(from) + static_cast<std::size_t>(b.rank()) * cut.piece;
}

}  // namespace

task scatter(communicator& comm, const operation& op) {
  const board b{comm};
  const pieces cut{.bytes = op.bytes(), .piece = part_bytes(b.ranks())};
  for (std::size_t i = 0; i < cut.count(); ++i) {
    if (b.rank() == op.peer) {
      if (!co_await b.can_fill()) {
        co_return;
      }
      fill_parts(b, op, cut, i);
    }
    b.post();
    if (!co_await b.is_filled(op.peer)) {
      co_return;
    }
    copy_bytes(op.out + cut.begin(i), own_part(b, op.peer, cut), cut.length(i));
    b.finish();
  }
}

task all_to_all(communicator& comm, const operation& op) {
  const board b{comm};
  const pieces cut{.bytes = op.bytes(), .piece = part_bytes(b.ranks())};
  for (std::size_t i = 0; i < cut.count(); ++i) {
    if (!co_await b.can_fill()) {
      co_return;
    }
    fill_parts(b, op, cut, i);
    b.post();
    for (int rank = 0; rank < b.ranks(); ++rank) {
      if (!co_await b.is_filled(rank)) {
        co_return;
      }
      std::byte* const block = op.out + static_cast<std::size_t>(rank) * op.bytes();
      copy_bytes(block + cut.begin(i), own_part(b, rank, cut), cut.length(i));
    }
    b.finish();
  }
}

}  // namespace spark_comm::host::nccl
