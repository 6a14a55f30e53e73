// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/config.hpp>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <fmt/core.h>
#include <optional>
#include <string_view>

namespace spark_comm::nccl {
namespace {

constexpr std::size_t longest_net_name = 255;

// NCCL's own default for the upper bound, MAXCHANNELS; older libraries cut it to theirs.
constexpr int default_max_ctas = 64;

struct range {
  int lowest;
  int highest;
};

constexpr int no_limit = INT_MAX;

void require_in(std::string_view field, std::optional<int> value, range accepted) {
  if (!value || (*value >= accepted.lowest && *value <= accepted.highest)) {
    return;
  }
  const auto upper = accepted.highest == no_limit
                         ? fmt::format("{} or more", accepted.lowest)
                         : fmt::format("{} to {}", accepted.lowest, accepted.highest);
  throw error{errc::invalid_argument,
              fmt::format("config: {} is {}; accepted is {}", field, *value, upper)};
}

// A control character in it would also cut the name or the log line that shows it.
bool is_printable(char letter) noexcept {
  const auto code = static_cast<unsigned char>(letter);
  return code >= 0x20U && code != 0x7fU;
}

void validate_net_name(std::string_view name) {
  if (name.size() > longest_net_name) {
    throw error{errc::invalid_argument,
                fmt::format("config: net_name '{}' has {} characters; accepted are {} at most",
                            name,
                            name.size(),
                            longest_net_name)};
  }
  if (!std::ranges::all_of(name, is_printable)) {
    throw error{errc::invalid_argument,
                fmt::format("config: net_name {:?} has a control character; accepted are printable "
                            "ones",
                            name)};
  }
}

}  // namespace

void validate(const config_options& options) {
  require_in("min_ctas", options.min_ctas, {.lowest = 1, .highest = no_limit});
  require_in("max_ctas", options.max_ctas, {.lowest = 1, .highest = no_limit});
  require_in("cga_cluster_size", options.cga_cluster_size, {.lowest = 0, .highest = no_limit});
  require_in("traffic_class", options.traffic_class, {.lowest = 0, .highest = 255});
  require_in(
      "n_channels_per_net_peer", options.n_channels_per_net_peer, {.lowest = 1, .highest = 64});
  if (options.min_ctas && options.max_ctas && *options.min_ctas > *options.max_ctas) {
    throw error{errc::invalid_argument,
                fmt::format("config: min_ctas is {}; accepted is max_ctas, which is {}, at most",
                            *options.min_ctas,
                            *options.max_ctas)};
  }
  validate_net_name(options.net_name);
}

abi::config make_config(const config_options& options, blocking_mode mode) {
  validate(options);
  abi::config made;
  switch (mode) {
    case blocking_mode::blocking:     made.blocking = 1; break;
    case blocking_mode::non_blocking: made.blocking = 0; break;
  }
  made.min_ctas = options.min_ctas.value_or(abi::undefined_int);
  made.max_ctas = options.max_ctas.value_or(abi::undefined_int);
  if (options.min_ctas && !options.max_ctas) {
    // NCCL up to 2.30 compares the lower bound with an unset upper one (INT_MIN) and refuses it.
    // Source: NVIDIA/nccl pull request 2256.
    made.max_ctas = std::max(*options.min_ctas, default_max_ctas);
  }
  made.cga_cluster_size = options.cga_cluster_size.value_or(abi::undefined_int);
  made.traffic_class = options.traffic_class.value_or(abi::undefined_int);
  made.n_channels_per_net_peer = options.n_channels_per_net_peer.value_or(abi::undefined_int);
  made.net_name = options.net_name.empty() ? nullptr : options.net_name.c_str();
  return made;
}

}  // namespace spark_comm::nccl
