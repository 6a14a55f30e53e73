// SPDX-License-Identifier: AGPL-3.0-only
// Runs a call that may never return on a thread of its own, and waits for it no longer than told.
#pragma once

#include <functional>

#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>

namespace spark_comm::detail {

/// Runs `work` on a fresh thread and waits until it is over or the deadline has passed.
///
/// A fresh thread each time, because NCCL leaves a thread's group depth raised after some errors:
/// the thread is retired with the call. After `timed_out` the thread is left behind; `work` must
/// therefore own whatever it touches.
/// Throws: what `work` threw, when it ended in time; system_failed when no thread can be had.
[[nodiscard]] wait_result run_bounded(std::function<void()> work, const deadline& until);

}  // namespace spark_comm::detail
