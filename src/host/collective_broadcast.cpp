// SPDX-License-Identifier: AGPL-3.0-only
// Broadcast: the root shows its piece, everybody copies it.
#include "board.hpp"
#include "collectives.hpp"
#include "communicator.hpp"
#include "segment_layout.hpp"
#include "task.hpp"

#include <cstddef>

namespace spark_comm::host::nccl {

task broadcast(communicator& comm, const operation& op) {
  const board b{comm};
  const pieces cut{.bytes = op.bytes(), .piece = slot_bytes};
  const bool is_root = b.rank() == op.peer;
  for (std::size_t i = 0; i < cut.count(); ++i) {
    if (is_root) {
      if (!co_await b.can_fill()) {
        co_return;
      }
      copy_bytes(b.slot(b.rank()), op.in + cut.begin(i), cut.length(i));
    }
    b.post();
    if (!is_root && !co_await b.is_filled(op.peer)) {
      co_return;
    }
    const std::byte* from = is_root ? op.in + cut.begin(i) : b.slot(op.peer);
    copy_bytes(op.out + cut.begin(i), from, cut.length(i));
    b.finish();
  }
}

}  // namespace spark_comm::host::nccl
