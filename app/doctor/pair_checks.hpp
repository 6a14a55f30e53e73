// SPDX-License-Identifier: AGPL-3.0-only
// What two machines have to have alike, and which link they share.
#pragma once

#include "doctor/finding.hpp"
#include "doctor/machine_files.hpp"
#include "doctor/snapshot.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace spark_comm::app::doctor {

/// Both have the same addresses: two processes of one machine.
[[nodiscard]] bool are_one_machine(const machine_snapshot& mine, const machine_snapshot& theirs);

/// pair.*: NCCL, driver, environment, and the link that both can use.
[[nodiscard]] findings compare_machines(const machine_snapshot& mine,
                                        const machine_snapshot& theirs);

/// Bytes sent and received by name of port, interfaces and RDMA devices alike.
using port_counters = std::map<std::string, std::uint64_t>;

/// This machine's counters, from the files of a snapshot that was taken now.
/// Source: statistics/{rx,tx}_bytes of network interfaces; counters/port_{rcv,xmit}_data of RDMA
/// ports, which count units of four bytes.
[[nodiscard]] port_counters read_counters(const machine_files& files);

/// Which ports carried a burst of `bytes`: a port counts as soon as it moved a quarter of it. One
/// of `expected` is among them: a note. Another one alone: a warning. None: a warning that the
/// counters prove nothing.
[[nodiscard]] finding judge_burst(const port_counters& before,
                                  const port_counters& after,
                                  std::uint64_t bytes,
                                  const std::vector<std::string>& expected);

}  // namespace spark_comm::app::doctor
