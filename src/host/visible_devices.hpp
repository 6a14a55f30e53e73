// SPDX-License-Identifier: AGPL-3.0-only
// Which of the host runtime's devices a process sees: pure parsing of the environment's words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::host {

using device_uuid = std::array<std::uint8_t, 16>;

inline constexpr int default_device_count = 8;
inline constexpr int largest_device_count = 64;

/// Value of SPARK_COMM_HOST_DEVICES (null when unset): 1 to 64, nothing when it is no such number.
[[nodiscard]] std::optional<int> parse_device_count(const char* text) noexcept;

/// The UUID of a physical device: the same for all processes of this boot, another for each device.
[[nodiscard]] device_uuid make_uuid(std::string_view boot_id, int physical) noexcept;

/// As in CUDA_VISIBLE_DEVICES: "GPU-" and 8-4-4-4-12 hexadecimal digits.
[[nodiscard]] std::string uuid_text(const device_uuid& id);

/// Physical devices in the order of CUDA_VISIBLE_DEVICES (null when unset: all).
///
/// Entries are ordinals or beginnings of UUIDs that fit one device only. The list ends at the first
/// entry that is neither; a device named twice makes none visible.
[[nodiscard]] std::vector<int> visible_devices(const char* text,
                                               const std::vector<device_uuid>& physical);

}  // namespace spark_comm::host
