// SPDX-License-Identifier: AGPL-3.0-only
// The checks of one machine, a group a file. Each is a function of the snapshot alone; where each
// comes from stands in docs/doctor.md.
#pragma once

#include "doctor/finding.hpp"
#include "doctor/snapshot.hpp"

namespace spark_comm::app::doctor {

/// gpu.*: driver, device files, links.
[[nodiscard]] findings check_gpus(const machine_snapshot& machine);

/// nccl.*: which library, how many, what it is told by files, NVLS.
[[nodiscard]] findings check_nccl(const machine_snapshot& machine);

/// roce.*: ports, halves, speed, MTU, GIDs.
[[nodiscard]] findings check_roce(const machine_snapshot& machine);

/// system.*: memory limits and areas.
[[nodiscard]] findings check_system(const machine_snapshot& machine);

/// env.*: names nobody reads, values out of range, interfaces that are not there.
[[nodiscard]] findings check_variables(const machine_snapshot& machine);

/// All of them, the worst first.
[[nodiscard]] findings check_machine(const machine_snapshot& machine);

}  // namespace spark_comm::app::doctor
