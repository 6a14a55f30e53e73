// SPDX-License-Identifier: AGPL-3.0-only
// The environment variables that NCCL reads: it ignores every other name in silence.
#pragma once

#include <spark_comm/core/export.hpp>

#include <span>
#include <string_view>

namespace spark_comm::nccl {

/// Sorted. A newer NCCL or a plug-in may read more, so a name that is missing here is wrong only
/// when it looks like one that is here.
///
/// Source: the names in libnccl.so.2 of 2.28.9, and the environment page of NCCL's user guide as of
/// 2.32, which also lists names that were removed.
[[nodiscard]] SPARK_COMM_API std::span<const std::string_view> known_variables() noexcept;

}  // namespace spark_comm::nccl
