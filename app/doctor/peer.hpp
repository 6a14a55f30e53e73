// SPDX-License-Identifier: AGPL-3.0-only
// `doctor --peer`: meets the other machine, exchanges what both know, and sends a burst to see
// which ports count it.
#pragma once

#include "doctor/doctor.hpp"
#include "doctor/finding.hpp"
#include "doctor/machine_files.hpp"

namespace spark_comm::app::doctor {

/// Who: both machines, with the same address. Between machines a key is needed, as for every
/// meeting.
/// Throws: what `rendezvous::session::meet` throws.
[[nodiscard]] findings examine_pair(const doctor_options& options, const machine_files& files);

}  // namespace spark_comm::app::doctor
