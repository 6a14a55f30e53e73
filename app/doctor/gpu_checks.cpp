// SPDX-License-Identifier: AGPL-3.0-only
// Driver, device files and links of the GPUs.
#include "doctor/checks.hpp"
#include "doctor/finding.hpp"
#include "doctor/snapshot.hpp"

#include <fmt/format.h>
#include <string>

namespace spark_comm::app::doctor {
namespace {

void check_device_file(const machine_snapshot& machine, const std::string& path, findings& out) {
  const auto at = machine.devices.find(path);
  if (at != machine.devices.end() && at->second == "rw") {
    return;
  }
  const bool is_missing = at == machine.devices.end();
  out.push_back(
      {.how = grade::problem,
       .check = "gpu.device_file",
       .seen =
           fmt::format("{} {}", path, is_missing ? "is missing" : "cannot be opened for writing"),
       .means = "CUDA cannot reach the GPU from here, although the driver is loaded.",
       .remedy = is_missing
                     ? "in a container: start it with --gpus all; else: sudo nvidia-modprobe "
                       "-c 0 -u"
                     : "sudo usermod -aG video,render $USER, and log in again"});
}

}  // namespace

findings check_gpus(const machine_snapshot& machine) {
  findings out;
  if (machine.driver.empty()) {
    out.push_back({.how = grade::note,
                   .check = "gpu.no_driver",
                   .seen = "no NVIDIA driver is loaded, so there is no GPU to use",
                   .means =
                       "The host runtime takes its place: every operation, test, benchmark and "
                       "example works between processes of this machine, on its CPU.",
                   .remedy = {}});
    return out;
  }
  if (machine.gpus.empty()) {
    out.push_back({.how = grade::problem,
                   .check = "gpu.none",
                   .seen = fmt::format("driver {} is loaded, but shows no GPU", machine.driver),
                   .means = "The GPU has dropped off the bus, or this container was given none.",
                   .remedy = "sudo dmesg | grep -i -e nvrm -e xid; in a container: --gpus all"});
    return out;
  }
  check_device_file(machine, "/dev/nvidiactl", out);
  check_device_file(machine, "/dev/nvidia-uvm", out);
  for (const gpu& each : machine.gpus) {
    if (each.minor >= 0) {
      check_device_file(machine, fmt::format("/dev/nvidia{}", each.minor), out);
    }
    // An idle GPU lowers its speed, never its width.
    if (each.link.width > 0 && each.link.width < each.link.most_width) {
      out.push_back({.how = grade::warning,
                     .check = "gpu.pcie_width",
                     .seen = fmt::format("GPU {} has {} of {} PCIe lanes",
                                         each.pci_address,
                                         each.link.width,
                                         each.link.most_width),
                     .means = "Copies to it and messages through the host are slower by as much.",
                     .remedy = "seat the card again, or move it to a slot with all lanes; see sudo "
                               "lspci -vv -s " +
                               each.pci_address});
    }
  }
  if (!machine.has_libcuda) {
    out.push_back({.how = grade::problem,
                   .check = "gpu.no_libcuda",
                   .seen = "the driver is loaded, but there is no libcuda.so.1",
                   .means = "No program can use the GPU; automatic takes the host runtime.",
                   .remedy = "in a container: --gpus all with NVIDIA_DRIVER_CAPABILITIES=compute,"
                             "utility; else install the driver's libraries of version " +
                             machine.driver});
  }
  return out;
}

}  // namespace spark_comm::app::doctor
