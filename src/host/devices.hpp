// SPDX-License-Identifier: AGPL-3.0-only
// The devices of the host runtime and their primary contexts. A device is a name for a share of
// this machine: all have the same cores and the same memory.
#pragma once

#include "driver_abi.hpp"
#include "stream.hpp"
#include "visible_devices.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace spark_comm::host {

/// One visible device with its primary context.
///
/// Releasing the last reference of a primary context keeps what was made in it (CUDA destroys it):
/// handles stay valid until they are destroyed one by one.
struct device_entry {
  int physical = -1;
  device_uuid id{};
  std::string pci_bus_id;
  std::atomic<int> retained = 0;
  /// Ordinals of the devices that this context was given access to; bit n for device n.
  std::atomic<unsigned long long> peers = 0;
  std::once_flag default_stream_made;
  stream_ptr default_stream;
};

/// Free and total bytes of this machine's memory.
struct memory_figures {
  std::size_t available_bytes = 0;
  std::size_t total_bytes = 0;
};

/// Zero for what the system does not tell.
[[nodiscard]] memory_figures read_memory_figures() noexcept;

/// Value of a CUdevice_attribute; false for a number that CUDA 13 does not know.
[[nodiscard]] bool read_attribute(const device_entry& entry, int attribute, int& value) noexcept;

using device_list = std::vector<std::unique_ptr<device_entry>>;

/// The devices that the environment makes visible. Returns invalid_value for a
/// SPARK_COMM_HOST_DEVICES that is no number from 1 to 64, no_device when none is visible.
[[nodiscard]] driver::result list_devices(device_list& devices);

}  // namespace spark_comm::host
