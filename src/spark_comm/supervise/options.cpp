// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/options.hpp>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace spark_comm {
namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view allowed) {
  throw error{errc::invalid_argument, fmt::format("{} is '{}', not {}", name, value, allowed)};
}

/// A whole number; unlike `stoul`, nothing before or after it, no sign.
std::uint64_t to_number(std::string_view name, const std::string& value) {
  std::uint64_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, failure] = std::from_chars(value.data(), end, number);
  if (failure != std::errc{} || stop != end) {
    refuse(name, value, "a whole number");
  }
  return number;
}

duration to_milliseconds(std::string_view name, const std::string& value) {
  constexpr std::uint64_t day = 24ULL * 60 * 60 * 1000;
  const std::uint64_t number = to_number(name, value);
  if (number > day) {
    refuse(name, value, "at most a day in milliseconds");
  }
  return std::chrono::milliseconds{number};
}

constexpr int largest_port = 65535;

int to_port(std::string_view name, const std::string& value) {
  const std::uint64_t number = to_number(name, value);
  if (number > largest_port) {
    refuse(name, value, "a port up to 65535");
  }
  return static_cast<int>(number);
}

mismatch_check to_check(const std::string& value) {
  for (const mismatch_check check : all_mismatch_checks) {
    if (value == name_of(check)) {
      return check;
    }
  }
  refuse("SPARK_COMM_MISMATCH_CHECK", value, "background, strict or off");
}

supervision to_supervision(const std::string& value) {
  if (value == "on") {
    return supervision::on;
  }
  if (value == "off") {
    return supervision::off;
  }
  refuse("SPARK_COMM_SUPERVISION", value, "on or off");
}

}  // namespace

std::string_view name_of(mismatch_check check) noexcept {
  switch (check) {
    case mismatch_check::background: return "background";
    case mismatch_check::strict:     return "strict";
    case mismatch_check::off:        return "off";
  }
  return "unknown";
}

supervise_options supervise_options::from_environment(const supervise_options& defaults,
                                                      const environment_lookup& lookup) {
  supervise_options options = defaults;
  if (const auto value = lookup("SPARK_COMM_SUPERVISION")) {
    options.enabled = to_supervision(*value);
  }
  if (const auto value = lookup("SPARK_COMM_MISMATCH_CHECK")) {
    options.check = to_check(*value);
  }
  if (const auto value = lookup("SPARK_COMM_HEARTBEAT_MS")) {
    options.heartbeat_interval = to_milliseconds("SPARK_COMM_HEARTBEAT_MS", *value);
  }
  if (const auto value = lookup("SPARK_COMM_SILENCE_MS")) {
    options.silence_limit = to_milliseconds("SPARK_COMM_SILENCE_MS", *value);
  }
  if (const auto value = lookup("SPARK_COMM_FLIGHT_DIR")) {
    options.record_directory = *value;
  }
  if (const auto value = lookup("SPARK_COMM_FLIGHT_ENTRIES")) {
    options.record_capacity = to_number("SPARK_COMM_FLIGHT_ENTRIES", *value);
  }
  if (const auto value = lookup("SPARK_COMM_METRICS_DIR")) {
    options.metrics_directory = *value;
  }
  if (const auto value = lookup("SPARK_COMM_METRICS_PORT")) {
    options.metrics_port = to_port("SPARK_COMM_METRICS_PORT", *value);
  }
  options.validate();
  return options;
}

supervise_options supervise_options::from_environment() {
  return from_environment({}, [](const std::string& name) -> std::optional<std::string> {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, at the start; the header says so
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>{value};
  });
}

void supervise_options::validate() const {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  const auto in_ms = [](duration span) {
    return fmt::format("{} ms", duration_cast<milliseconds>(span).count());
  };
  if (heartbeat_interval < milliseconds{1} || heartbeat_interval > std::chrono::minutes{1}) {
    refuse("heartbeat_interval", in_ms(heartbeat_interval), "1 ms to 60000 ms");
  }
  if (silence_limit < 3 * heartbeat_interval) {
    refuse("silence_limit",
           in_ms(silence_limit),
           fmt::format("at least three heartbeats ({})", in_ms(3 * heartbeat_interval)));
  }
  constexpr std::size_t largest = std::size_t{1} << 20U;
  if (record_capacity == 0 || record_capacity > largest) {
    refuse("record_capacity", fmt::format("{}", record_capacity), fmt::format("1 to {}", largest));
  }
  if (metrics_port < 0 || metrics_port > largest_port) {
    refuse("metrics_port", fmt::format("{}", metrics_port), "0 to 65535");
  }
}

}  // namespace spark_comm
