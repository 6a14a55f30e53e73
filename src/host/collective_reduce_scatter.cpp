// SPDX-License-Identifier: AGPL-3.0-only
// Reduce-scatter: a slot holds one part for each rank, and each reduces its own of all ranks.
#include "board.hpp"
#include "collectives.hpp"
#include "communicator.hpp"
#include "reduce.hpp"
#include "segment_layout.hpp"
#include "task.hpp"

#include <array>
#include <cstddef>

namespace spark_comm::host::nccl {

task reduce_scatter(communicator& comm, const operation& op) {
  const board b{comm};
  const pieces cut{.bytes = op.bytes(), .piece = part_bytes(b.ranks())};
  const auto world = static_cast<std::size_t>(b.ranks());
  for (std::size_t i = 0; i < cut.count(); ++i) {
    if (!co_await b.can_fill()) {
      co_return;
    }
    for (std::size_t block = 0; block < world; ++block) {
      copy_bytes(b.slot(b.rank()) + block * cut.piece,
                 op.in + block * op.bytes() + cut.begin(i),
                 cut.length(i));
    }
    b.post();
    if (!co_await b.are_filled()) {
      co_return;
    }
    std::array<const std::byte*, most_ranks> inputs;
    for (std::size_t rank = 0; rank < world; ++rank) {
      inputs[rank] =
          b.slot(static_cast<int>(rank)) + static_cast<std::size_t>(b.rank()) * cut.piece;
    }
    reduce_elements(
        op.how, inputs.data(), world, op.out + cut.begin(i), cut.length(i) / op.element());
    b.finish();
  }
}

}  // namespace spark_comm::host::nccl
