// SPDX-License-Identifier: AGPL-3.0-only
// On a Spark each socket of the ConnectX-7 is two devices, each with four PCIe lanes of its own.
#pragma once

#include "doctor/snapshot.hpp"

namespace spark_comm::app::doctor {

/// The device that shares the socket: the same bus, slot and function in another PCI domain, as
/// 0000:01:00.1 and 0002:01:00.1. Null where there is none, and on other machines.
[[nodiscard]] inline const roce_port* other_half(const machine_snapshot& machine,
                                                 const roce_port& port) {
  if (!machine.is_spark()) {
    return nullptr;
  }
  const auto within_domain = [](const roce_port& each) {
    const auto colon = each.pci_address.find(':');
    return colon == std::string::npos ? std::string{} : each.pci_address.substr(colon);
  };
  for (const roce_port& other : machine.roce) {
    if (other.device != port.device && !within_domain(port).empty() &&
        within_domain(other) == within_domain(port)) {
      return &other;
    }
  }
  return nullptr;
}

}  // namespace spark_comm::app::doctor
