// SPDX-License-Identifier: AGPL-3.0-only
// A rank process's side of a job: it joins the world that its environment names, and reports.
#pragma once

#include "bench_options.hpp"
#include "rank_report.hpp"

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/runtime.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace spark_comm::app {

/// Throws: failure (usage) unless this process was started as a rank of a job.
void require_started_as_rank();

/// Sends one report to the process that started us.
/// Throws: failure (failed) when it does not listen.
void send_report(const rank_report& report);

/// Loads the runtime that the options name.
[[nodiscard]] runtime load_runtime(runtime_kind kind, const std::string& nccl_library);

/// A joined world.
struct rank_session {
  runtime loaded;
  communicator comm;
};

/// What the job needs to know before anything is allocated.
struct rank_plan {
  std::size_t rows = 0;            ///< Reports that will come.
  std::uint64_t buffer_bytes = 0;  ///< That this rank will allocate.
};

using planner = std::function<rank_plan(runtime_kind loaded)>;

/// Joins, and reports address (on the head) and readiness.
///
/// Before the join it asks `plan` what is needed, and whether devices and memory are enough; no
/// rank has allocated then, because none is past the join. Throws: failure (usage) naming the
/// numbers; what `communicator::join` throws.
[[nodiscard]] rank_session join_job(const job_options& options, const planner& plan);

/// Ranks that use the same device as rank `rank`.
[[nodiscard]] int ranks_on_device_of(int rank, int world_size, int devices) noexcept;

/// Throws: failure (usage) naming both numbers when there are more ranks than devices and sharing
/// was not asked for.
void require_devices(int ranks, int devices, bool share_gpu);

}  // namespace spark_comm::app
