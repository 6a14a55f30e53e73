// SPDX-License-Identifier: AGPL-3.0-only
#include "devices.hpp"

#include "driver_abi.hpp"
#include "visible_devices.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace spark_comm::host {

namespace {

// A PCI domain that no real device has, so that the text never names one.
constexpr int pci_domain = 0xffff;

std::string read_boot_id() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string text;
  std::getline(file, text);
  return text;
}

std::string bus_id_text(int physical) {
  std::array<char, 16> text{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg): fixed width, fits
  std::snprintf(text.data(),
                text.size(),
                "%04x:%02x:00.0",
                static_cast<unsigned>(pci_domain),
                static_cast<unsigned>(physical) & 0xffU);
  return text.data();
}

const char* environment(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read once, at cuInit
}

}  // namespace

memory_figures read_memory_figures() noexcept {
  memory_figures figures;
  std::FILE* file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) {
    return figures;
  }
  std::array<char, 128> line{};
  unsigned long long kibibytes = 0;
  while (std::fgets(line.data(), static_cast<int>(line.size()), file) != nullptr) {
    if (std::sscanf(line.data(), "MemTotal: %llu kB", &kibibytes) == 1) {  // NOLINT(cert-err34-c)
      figures.total_bytes = kibibytes * 1024;
    } else if (std::sscanf(
                   line.data(), "MemAvailable: %llu kB", &kibibytes) ==  // NOLINT(cert-err34-c)
               1) {
      figures.available_bytes = kibibytes * 1024;
    }
  }
  static_cast<void>(std::fclose(file));
  return figures;
}

bool read_attribute(const device_entry& entry, int attribute, int& value) noexcept {
  constexpr int past_last = 150;  // CU_DEVICE_ATTRIBUTE_MAX lies below in CUDA 13
  if (attribute < 1 || attribute >= past_last) {
    return false;
  }
  // What is not listed is a feature that the host runtime does not have, or a limit that it does
  // not set: zero. The compute capability stays 0.0: no GPU code fits.
  static constexpr std::pair<int, int> known[] = {
      {1, 1024},        // threads a block
      {2, 1024},        // block x
      {3, 1024},        // block y
      {4, 64},          // block z
      {5, 2147483647},  // grid x
      {6, 65535},       // grid y
      {7, 65535},       // grid z
      {10, 32},         // warp
      {18, 1},          // integrated: device memory is host memory
      {19, 1},          // maps host memory
      {31, 1},          // concurrent kernels
      {40, 1},          // copy engines
      {41, 1},          // unified addressing
      {50, pci_domain},
  };
  constexpr int multiprocessors = 16;
  constexpr int pci_bus = 33;
  if (attribute == multiprocessors) {
    value = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    return true;
  }
  if (attribute == pci_bus) {
    value = entry.physical;
    return true;
  }
  const auto* const found =
      std::find_if(std::begin(known), std::end(known), [attribute](const auto& pair) {
        return pair.first == attribute;
      });
  value = found == std::end(known) ? 0 : found->second;
  return true;
}

driver::result list_devices(device_list& devices) {
  const std::optional<int> count = parse_device_count(environment("SPARK_COMM_HOST_DEVICES"));
  if (!count) {
    return driver::invalid_value;
  }
  const std::string boot_id = read_boot_id();
  std::vector<device_uuid> ids;
  for (int physical = 0; physical < *count; ++physical) {
    ids.push_back(make_uuid(boot_id, physical));
  }
  for (const int physical : visible_devices(environment("CUDA_VISIBLE_DEVICES"), ids)) {
    auto entry = std::make_unique<device_entry>();
    entry->physical = physical;
    entry->id = ids[static_cast<std::size_t>(physical)];
    entry->pci_bus_id = bus_id_text(physical);
    devices.push_back(std::move(entry));
  }
  return devices.empty() ? driver::no_device : driver::success;
}

}  // namespace spark_comm::host
