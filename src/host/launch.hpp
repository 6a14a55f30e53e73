// SPDX-License-Identifier: AGPL-3.0-only
// Puts the operations of one communicator, gathered by a call or a group, onto its streams.
#pragma once

#include "collectives.hpp"
#include "communicator.hpp"
#include "stream.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace spark_comm::host::nccl {

/// An operation and the stream that it was issued on.
struct issued_operation {
  operation op;
  stream_ptr target;
};

/// Checks what only the whole group shows: messages to oneself must come in pairs.
[[nodiscard]] int check_group(const communicator& comm,
                              const std::vector<issued_operation>& operations);

/// Enqueues them as one launch. Streams are all captured or all not.
///
/// Order: launches of a communicator run in the order of issue, even on different streams. Within
/// one, messages and the sequence of collectives progress side by side. With several streams, the
/// launch starts when all have come to it, and all go on when it is over.
[[nodiscard]] int launch(const communicator_ptr& comm,
                         const std::vector<issued_operation>& operations);

}  // namespace spark_comm::host::nccl
