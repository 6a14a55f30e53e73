// SPDX-License-Identifier: AGPL-3.0-only
// Reduce: everybody shows its piece, the root reduces them in rank order.
#include "board.hpp"
#include "collectives.hpp"
#include "communicator.hpp"
#include "reduce.hpp"
#include "segment_layout.hpp"
#include "task.hpp"

#include <array>
#include <cstddef>

namespace spark_comm::host::nccl {

task reduce(communicator& comm, const operation& op) {
  const board b{comm};
  const pieces cut{.bytes = op.bytes(), .piece = slot_bytes};
  for (std::size_t i = 0; i < cut.count(); ++i) {
    if (!co_await b.can_fill()) {
      co_return;
    }
    copy_bytes(b.slot(b.rank()), op.in + cut.begin(i), cut.length(i));
    b.post();
    if (b.rank() == op.peer) {
      if (!co_await b.are_filled()) {
        co_return;
      }
      std::array<const std::byte*, most_ranks> inputs;
      for (int rank = 0; rank < b.ranks(); ++rank) {
        inputs[static_cast<std::size_t>(rank)] = b.slot(rank);
      }
      reduce_elements(op.how,
                      inputs.data(),
                      static_cast<std::size_t>(b.ranks()),
                      op.out + cut.begin(i),
                      cut.length(i) / op.element());
    }
    b.finish();
  }
}

}  // namespace spark_comm::host::nccl
