// SPDX-License-Identifier: AGPL-3.0-only
// What the exchange paths share: the swap of two ranks' messages.
#pragma once

#include <spark_comm/comm/operation.hpp>
#include <spark_comm/nccl/api.hpp>

#include <array>

namespace spark_comm::detail {

/// Sends `op.in` to the other rank and receives its message, in one group.
[[nodiscard]] launch_result swap_messages(const nccl::api& call,
                                          nccl::abi::comm comm,
                                          const operation& op) noexcept;

/// Both messages, rank 0's first: added in this order the sum has the same bits on both ranks.
[[nodiscard]] std::array<const void*, 2> messages_in_rank_order(const operation& op) noexcept;

}  // namespace spark_comm::detail
