// SPDX-License-Identifier: AGPL-3.0-only
// Unique ids made by this process: each is an open file that peers find, and costs no thread or
// socket.
#pragma once

#include "nccl_abi.hpp"
#include "segment.hpp"

#include <cstdint>

namespace spark_comm::host::nccl {

/// Makes an id. The file stays open until a communicator of it goes in this process, or until
/// `most_open_ids` younger ids have been made.
[[nodiscard]] int make_unique_id(unique_id& id);

inline constexpr std::size_t most_open_ids = 1024;

/// The address inside an id.
[[nodiscard]] segment_address address_of(const unique_id& id) noexcept;

/// Closes the file of an id that this process made; anything else is ignored.
void release_unique_id(std::uint64_t token) noexcept;

}  // namespace spark_comm::host::nccl
