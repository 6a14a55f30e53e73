// SPDX-License-Identifier: AGPL-3.0-only
#include "quantity.hpp"

#include <spark_comm/core/time.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace spark_comm::app {
namespace {

struct unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::uint64_t kibi = 1024;

// Lower case: spellings are folded before they are looked up.
constexpr std::array<unit, 14> size_units = {{
    {"", 1},
    {"b", 1},
    {"k", kibi},
    {"kb", kibi},
    {"kib", kibi},
    {"m", kibi* kibi},
    {"mb", kibi* kibi},
    {"mib", kibi* kibi},
    {"g", kibi* kibi* kibi},
    {"gb", kibi* kibi* kibi},
    {"gib", kibi* kibi* kibi},
    {"t", kibi* kibi* kibi* kibi},
    {"tb", kibi* kibi* kibi* kibi},
    {"tib", kibi* kibi* kibi* kibi},
}};

// Nanoseconds.
constexpr std::array<unit, 7> duration_units = {{
    {"", 1'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
    {"us", 1'000},
    {"ns", 1},
    {"m", 60'000'000'000},
    {"h", 3'600'000'000'000},
}};

std::string folded(std::string_view text) {
  std::string lower;
  for (const char letter : text) {
    lower += (letter >= 'A' && letter <= 'Z') ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return lower;
}

std::optional<std::uint64_t> parse_quantity(std::string_view text, std::span<const unit> units) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc{}) {
    return std::nullopt;
  }
  const std::string suffix = folded({rest, end});
  for (const unit& candidate : units) {
    if (candidate.name == suffix) {
      if (number > std::numeric_limits<std::uint64_t>::max() / candidate.factor) {
        return std::nullopt;
      }
      return number * candidate.factor;
    }
  }
  return std::nullopt;
}

/// Without a fraction where there is none.
std::string shortest(double value, std::string_view unit_name) {
  const double rounded = std::round(value * 10) / 10;
  return rounded == std::floor(rounded) ? fmt::format("{:.0f} {}", rounded, unit_name)
                                        : fmt::format("{:.1f} {}", rounded, unit_name);
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) noexcept {
  return parse_quantity(text, size_units);
}

std::optional<duration> parse_duration(std::string_view text) noexcept {
  const std::optional<std::uint64_t> count = parse_quantity(text, duration_units);
  if (!count || *count > static_cast<std::uint64_t>(duration::max().count())) {
    return std::nullopt;
  }
  return duration{static_cast<duration::rep>(*count)};
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> names = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t step = 0;
  while (value >= static_cast<double>(kibi) && step + 1 < names.size()) {
    value /= static_cast<double>(kibi);
    ++step;
  }
  return shortest(value, names.at(step));
}

std::string duration_text(duration span) {
  const auto count = static_cast<double>(span.count());
  if (span >= std::chrono::seconds{1}) {
    return shortest(count / 1e9, "s");
  }
  if (span >= std::chrono::milliseconds{1}) {
    return shortest(count / 1e6, "ms");
  }
  return shortest(count / 1e3, "us");
}

}  // namespace spark_comm::app
