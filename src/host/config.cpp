// SPDX-License-Identifier: AGPL-3.0-only
#include "config.hpp"

#include "last_error.hpp"
#include "nccl_abi.hpp"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace spark_comm::host::nccl {
namespace {

constexpr int largest_int = INT_MAX;

// A field, what it may be when it is set, and the version that brought it.
struct field_rule {
  const char* name;
  int config::* field;
  int least;
  int most;
  unsigned int since;
};

constexpr unsigned int version_of(unsigned int major, unsigned int minor) {
  return major * 10000 + minor * 100;
}

constexpr field_rule rules[] = {
    {"blocking", &config::blocking, 0, 1, version_of(2, 14)},
    {"cgaClusterSize", &config::cga_cluster_size, 0, largest_int, version_of(2, 17)},
    {"minCTAs", &config::min_ctas, 1, largest_int, version_of(2, 17)},
    {"maxCTAs", &config::max_ctas, 1, largest_int, version_of(2, 17)},
    {"splitShare", &config::split_share, 0, 1, version_of(2, 18)},
    // The gate is as NCCL's: the padding of a 2.25 config is read as a traffic class.
    {"trafficClass", &config::traffic_class, -largest_int, largest_int, version_of(2, 25)},
    {"collnetEnable", &config::collnet_enable, 0, 1, version_of(2, 27)},
    {"CTAPolicy", &config::cta_policy, 0, 2, version_of(2, 27)},
    {"shrinkShare", &config::shrink_share, 0, 1, version_of(2, 27)},
    {"nvlsCTAs", &config::nvls_ctas, 1, largest_int, version_of(2, 27)},
    {"nChannelsPerNetPeer", &config::n_channels_per_net_peer, 1, 64, version_of(2, 28)},
    {"nvlinkCentricSched", &config::nvlink_centric_sched, 0, 1, version_of(2, 28)},
};

int check_fields(config& read) {
  for (const field_rule& rule : rules) {
    int& value = read.*rule.field;
    if (read.version < rule.since) {
      value = undefined_int;
    }
    if (value != undefined_int && (value < rule.least || value > rule.most)) {
      return refuse(results::invalid_argument,
                    "Invalid config {} attribute value {}: use {} to {}",
                    rule.name,
                    value,
                    rule.least,
                    rule.most);
    }
  }
  if (read.min_ctas != undefined_int && read.max_ctas != undefined_int &&
      read.min_ctas > read.max_ctas) {
    return refuse(
        results::invalid_argument,
        "Invalid config min/max channels attribute value {}/{}: the least is above the most",
        read.min_ctas,
        read.max_ctas);
  }
  return results::success;
}

// NCCL_COMM_BLOCKING=0 or 1 overrides what the program asked for.
void apply_environment(settings& out) {
  const char* text = std::getenv("NCCL_COMM_BLOCKING");  // NOLINT(concurrency-mt-unsafe): as NCCL's
  if (text != nullptr && (std::string_view{text} == "0" || std::string_view{text} == "1")) {
    out.is_blocking = *text == '1';
  }
}

}  // namespace

int read_config(const config* given, const settings& inherited, settings& out) {
  out = inherited;
  if (given != nullptr) {
    config read;
    std::memcpy(static_cast<void*>(&read), given, std::min(given->size, sizeof(config)));
    if (read.magic != config_magic) {
      return refuse(results::invalid_argument,
                    "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
    }
    if (const int code = check_fields(read); code != results::success) {
      return code;
    }
    if (read.blocking != undefined_int) {
      out.is_blocking = read.blocking == 1;
    }
    if (read.split_share != undefined_int) {
      out.shares_on_split = read.split_share == 1;
    }
    if (read.shrink_share != undefined_int) {
      out.shares_on_shrink = read.shrink_share == 1;
    }
    if (read.comm_name != nullptr && read.version >= version_of(2, 27)) {
      out.name = read.comm_name;
    }
  }
  apply_environment(out);
  return results::success;
}

}  // namespace spark_comm::host::nccl
