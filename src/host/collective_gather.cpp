// SPDX-License-Identifier: AGPL-3.0-only
// All-gather and gather: everybody shows its piece; all, or the root alone, copy everybody's.
#include "board.hpp"
#include "collectives.hpp"
#include "communicator.hpp"
#include "segment_layout.hpp"
#include "task.hpp"

#include <cstddef>
#include <cstdint>

namespace spark_comm::host::nccl {
namespace {

enum class readers : std::uint8_t { all, root };

task gather_to(communicator& comm, const operation& op, readers who) {
  const board b{comm};
  const pieces cut{.bytes = op.bytes(), .piece = slot_bytes};
  const bool is_reader = who == readers::all || b.rank() == op.peer;
  for (std::size_t i = 0; i < cut.count(); ++i) {
    if (!co_await b.can_fill()) {
      co_return;
    }
    copy_bytes(b.slot(b.rank()), op.in + cut.begin(i), cut.length(i));
    b.post();
    for (int rank = 0; is_reader && rank < b.ranks(); ++rank) {
      if (!co_await b.is_filled(rank)) {
        co_return;
      }
      std::byte* const block = op.out + static_cast<std::size_t>(rank) * op.bytes();
      copy_bytes(block + cut.begin(i), b.slot(rank), cut.length(i));
    }
    b.finish();
  }
}

}  // namespace

task all_gather(communicator& comm, const operation& op) {
  return gather_to(comm, op, readers::all);
}

task gather(communicator& comm, const operation& op) {
  return gather_to(comm, op, readers::root);
}

}  // namespace spark_comm::host::nccl
