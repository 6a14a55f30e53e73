// SPDX-License-Identifier: AGPL-3.0-only
#include "doctor/variable_ranges.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/supervise/options.hpp>

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace spark_comm::app::doctor {
namespace {

struct range {
  std::string_view name;
  long long least;
  long long most;
};

constexpr range ranges[] = {
    {"NCCL_COMM_BLOCKING", 0, 1},
    {"NCCL_CROSS_NIC", 0, 2},
    {"NCCL_CUMEM_ENABLE", 0, 1},
    {"NCCL_IB_DISABLE", 0, 1},
    {"NCCL_IB_GID_INDEX", -1, 255},
    {"NCCL_IB_QPS_PER_CONNECTION", 1, 128},
    {"NCCL_IB_RETRY_CNT", 0, 7},
    {"NCCL_IB_TIMEOUT", 1, 31},  // 0 waits for ever
    {"NCCL_MAX_CTAS", 1, 64},
    {"NCCL_MIN_CTAS", 1, 64},
    {"NCCL_MNNVL_ENABLE", 0, 2},
    {"NCCL_NVLS_ENABLE", 0, 2},
    {"NCCL_P2P_DISABLE", 0, 1},
    {"NCCL_SHM_DISABLE", 0, 1},
    {"NCCL_SOCKET_NTHREADS", 1, 16},
    {"SPARK_COMM_HOST_DEVICES", 1, 64},
    {"SPARK_COMM_RANK", 0, 1023},
    {"SPARK_COMM_WORLD_SIZE", 1, 1024},
};

bool is_a_time(std::string_view name) {
  return name == "SPARK_COMM_HEARTBEAT_MS" || name == "SPARK_COMM_SILENCE_MS";
}

std::optional<long long> number_of(const std::string& value) {
  long long number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, failure] = std::from_chars(value.data(), end, number);
  return failure == std::errc{} && stop == end ? std::optional{number} : std::nullopt;
}

}  // namespace

std::string refused_value(const std::string& name, const std::map<std::string, std::string>& all) {
  const std::string& value = all.at(name);
  const auto at = std::ranges::find(ranges, name, &range::name);
  if (at != std::end(ranges)) {
    const auto number = number_of(value);
    return number && *number >= at->least && *number <= at->most
               ? ""
               : fmt::format("{} to {}", at->least, at->most);
  }
  try {
    // Only this variable is shown to the parser, so that it answers for no other; the two times are
    // bound to each other.
    const bool is_time = is_a_time(name);
    (void)supervise_options::from_environment({}, [&](const std::string& asked) {
      const auto found = all.find(asked);
      const bool is_shown = asked == name || (is_time && is_a_time(asked));
      return is_shown && found != all.end() ? std::optional{found->second} : std::nullopt;
    });
  } catch (const error& failure) {
    return failure.message();
  }
  return {};
}

}  // namespace spark_comm::app::doctor
