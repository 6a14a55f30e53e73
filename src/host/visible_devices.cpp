// SPDX-License-Identifier: AGPL-3.0-only
#include "visible_devices.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace spark_comm::host {

namespace {

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view blanks = " \t";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::optional<int> parse_whole(std::string_view text) noexcept {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc{} || stop != end) {
    return std::nullopt;
  }
  return value;
}

// The finaliser of SplitMix64: spreads a counter over all bits.
std::uint64_t mix(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

// The one device that `entry` names, or nothing.
std::optional<int> resolve(std::string_view entry, const std::vector<device_uuid>& physical) {
  if (const std::optional<int> ordinal = parse_whole(entry)) {
    const bool exists = *ordinal >= 0 && *ordinal < static_cast<int>(physical.size());
    return exists ? ordinal : std::nullopt;
  }
  if (!entry.starts_with("GPU-")) {
    return std::nullopt;
  }
  std::optional<int> match;
  for (std::size_t index = 0; index < physical.size(); ++index) {
    if (uuid_text(physical[index]).starts_with(entry)) {
      if (match) {
        return std::nullopt;
      }
      match = static_cast<int>(index);
    }
  }
  return match;
}

}  // namespace

std::optional<int> parse_device_count(const char* text) noexcept {
  if (text == nullptr) {
    return default_device_count;
  }
  const std::optional<int> count = parse_whole(trimmed(text));
  return count && *count >= 1 && *count <= largest_device_count ? count : std::nullopt;
}

device_uuid make_uuid(std::string_view boot_id, int physical) noexcept {
  std::uint64_t seed = static_cast<std::uint64_t>(physical);
  for (const char c : boot_id) {
    seed = mix(seed ^ static_cast<unsigned char>(c));
  }
  const std::uint64_t halves[] = {mix(seed), mix(~seed)};
  device_uuid id{};
  for (std::size_t byte = 0; byte < id.size(); ++byte) {
    id[byte] = static_cast<std::uint8_t>(halves[byte / 8] >> (8 * (byte % 8)));
  }
  return id;
}

std::string uuid_text(const device_uuid& id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "GPU-";
  for (std::size_t byte = 0; byte < id.size(); ++byte) {
    if (byte == 4 || byte == 6 || byte == 8 || byte == 10) {
      text += '-';
    }
    text += digits[id[byte] >> 4U];
    text += digits[id[byte] & 0xfU];
  }
  return text;
}

std::vector<int> visible_devices(const char* text, const std::vector<device_uuid>& physical) {
  std::vector<int> visible;
  if (text == nullptr) {
    for (int ordinal = 0; ordinal < static_cast<int>(physical.size()); ++ordinal) {
      visible.push_back(ordinal);
    }
    return visible;
  }
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::optional<int> found = resolve(trimmed(rest.substr(0, comma)), physical);
    if (!found) {
      break;
    }
    if (std::find(visible.begin(), visible.end(), *found) != visible.end()) {
      return {};
    }
    visible.push_back(*found);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return visible;
}

}  // namespace spark_comm::host
