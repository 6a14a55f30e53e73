// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/network_port.hpp>
#include <spark_comm/rendezvous/shared_link.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace spark_comm::rendezvous {
namespace {

/// Small is good.
auto order_of(const shared_link& link) {
  return std::tuple{-std::min(link.mine.speed_mbps, link.theirs.speed_mbps),
                    -link.mine.prefix_length,
                    link.mine.interface,
                    link.theirs.interface,
                    link.mine.address};
}

std::string describe(std::span<const network_port> ports) {
  std::string text;
  for (const network_port& port : ports) {
    text += fmt::format("{}{} {}/{} ({})",
                        text.empty() ? "" : ", ",
                        port.interface,
                        port.address,
                        port.prefix_length,
                        name_of(fault_of(port)));
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<shared_link> shared_links(std::span<const network_port> mine,
                                      std::span<const network_port> theirs) {
  std::vector<shared_link> links;
  for (const network_port& here : mine) {
    for (const network_port& there : theirs) {
      if (fault_of(here) == port_fault::none && fault_of(there) == port_fault::none &&
          here.address != there.address && share_subnet(here, there)) {
        links.push_back({.mine = here, .theirs = there});
      }
    }
  }
  std::ranges::sort(links, {}, order_of);
  return links;
}

shared_link choose_link(std::span<const network_port> mine, std::span<const network_port> theirs) {
  std::vector<shared_link> links = shared_links(mine, theirs);
  if (links.empty()) {
    throw error{
        errc::invalid_usage,
        fmt::format(
            "no usable shared link; here: {}; there: {}", describe(mine), describe(theirs))};
  }
  return links.front();
}

}  // namespace spark_comm::rendezvous
