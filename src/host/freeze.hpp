// SPDX-License-Identifier: AGPL-3.0-only
// Stops the whole process for a while, as a debugger or a laptop's lid does.
#pragma once

#include <chrono>

namespace spark_comm::host {

/// All threads stand still until `time` is over; then the call returns. False when it cannot be
/// done.
[[nodiscard]] bool freeze_process(std::chrono::nanoseconds time) noexcept;

}  // namespace spark_comm::host
