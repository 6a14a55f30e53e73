// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/paths/detail/path_offer.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unistd.h>

namespace spark_comm::detail {

static_assert(std::is_trivially_copyable_v<path_offer>);

rendezvous::bytes encode(const path_offer& offer) {
  rendezvous::bytes bytes(sizeof offer);
  std::memcpy(bytes.data(), &offer, sizeof offer);
  return bytes;
}

path_offer decode_offer(const rendezvous::bytes& bytes) {
  path_offer offer;
  if (bytes.size() != sizeof offer) {
    throw error{
        errc::internal,
        fmt::format("{} bytes are no offer of paths, which has {}", bytes.size(), sizeof offer)};
  }
  std::memcpy(&offer, bytes.data(), sizeof offer);
  return offer;
}

void set_text(std::span<char> to, std::string_view text) noexcept {
  std::ranges::fill(to, '\0');
  std::copy_n(text.data(), std::min(text.size(), to.size()), to.data());
}

std::string_view text_of(std::span<const char> from) noexcept {
  const std::string_view whole{from.data(), from.size()};
  return whole.substr(0, whole.find('\0'));
}

std::string this_host() {
  std::string id;
  if (std::ifstream in{"/proc/sys/kernel/random/boot_id"}; std::getline(in, id)) {
    return id;
  }
  char name[64] = {};
  // A name that does not fit is cut, which is good enough to tell hosts apart.
  static_cast<void>(::gethostname(name, sizeof name - 1));
  return name;
}

bool are_near(std::span<const path_offer> offers) noexcept {
  return std::ranges::all_of(
      offers, [&](const path_offer& each) { return each.host == offers.front().host; });
}

std::optional<missing_part> first_without(std::span<const path_offer> offers,
                                          std::uint8_t path_offer::* part) {
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    if (offers[rank].*part == 0) {
      return missing_part{static_cast<int>(rank), std::string{text_of(offers[rank].reason)}};
    }
  }
  return std::nullopt;
}

}  // namespace spark_comm::detail
