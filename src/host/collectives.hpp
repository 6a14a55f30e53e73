// SPDX-License-Identifier: AGPL-3.0-only
// The operations as tasks: straight-line code that waits without holding a thread.
//
// All go through the board: a ring of slots a rank, filled by its owner and read by whoever needs
// it, in steps that all ranks count alike. A rank reads and writes only as far as its own arguments
// reach, so ranks that disagree on a count wait or get wrong data, and never touch other memory.
#pragma once

#include "communicator.hpp"
#include "reduce.hpp"
#include "task.hpp"

#include <cstddef>
#include <cstdint>

namespace spark_comm::host::nccl {

enum class operation_kind : std::uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  send,
  recv,
};

[[nodiscard]] constexpr bool is_message(operation_kind kind) noexcept {
  return kind == operation_kind::send || kind == operation_kind::recv;
}

/// One operation of a rank, with its arguments checked.
struct operation {
  operation_kind kind = operation_kind::all_reduce;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t count = 0;    ///< As the caller gave it: of the block, where there are blocks.
  reduction how;            ///< The element type, and the arithmetic of reductions.
  int peer = 0;             ///< Root of rooted collectives, the other end of messages.
  bool is_corrupt = false;  ///< By command: its result gets a wrong element.

  [[nodiscard]] std::size_t element() const noexcept { return element_bytes(how.dtype); }

  [[nodiscard]] std::size_t bytes() const noexcept { return count * element(); }
};

// Each runs on one rank; `comm` and `op` outlive the task.
[[nodiscard]] task all_reduce(communicator& comm, const operation& op);
[[nodiscard]] task reduce(communicator& comm, const operation& op);
[[nodiscard]] task broadcast(communicator& comm, const operation& op);
[[nodiscard]] task all_gather(communicator& comm, const operation& op);
[[nodiscard]] task reduce_scatter(communicator& comm, const operation& op);
[[nodiscard]] task all_to_all(communicator& comm, const operation& op);
[[nodiscard]] task gather(communicator& comm, const operation& op);
[[nodiscard]] task scatter(communicator& comm, const operation& op);
[[nodiscard]] task send(communicator& comm, const operation& op);
[[nodiscard]] task recv(communicator& comm, const operation& op);

/// The task of an operation.
[[nodiscard]] task make_task(communicator& comm, const operation& op);

}  // namespace spark_comm::host::nccl
