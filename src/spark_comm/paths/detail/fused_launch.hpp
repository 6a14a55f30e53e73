// SPDX-License-Identifier: AGPL-3.0-only
// The launches of the paths of all_reduce_rms_norm. `path_launch::norm` holds the call with this
// rank's own partial, which is also the operation's in and out.
#pragma once

#include <spark_comm/comm/operation.hpp>
#include <spark_comm/supervise/operation.hpp>

namespace spark_comm::detail {

[[nodiscard]] native_launch fused_launch_of(path_kind path) noexcept;

}  // namespace spark_comm::detail
