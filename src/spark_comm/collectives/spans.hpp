// SPDX-License-Identifier: AGPL-3.0-only
// What the typed overloads of the operations check about their spans.
#pragma once

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/export.hpp>

#include <cstddef>

namespace spark_comm::detail {

/// Throws invalid_argument unless `out_elements` is `factor` x `in_elements`.
SPARK_COMM_API void require_counts(const communicator& comm,
                                   const char* operation,
                                   std::size_t in_elements,
                                   std::size_t out_elements,
                                   std::size_t factor = 1);

}  // namespace spark_comm::detail
