// SPDX-License-Identifier: AGPL-3.0-only
// What ranks tell each other at the join about the ways that are open to them, and what follows.
#pragma once

#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::detail {

/// One rank's part. The reason says why something is not there.
struct path_offer {
  std::array<char, 64> host{};  ///< Names the running system that the rank is on.
  cuda::abi::ipc_mem_handle segments{};
  std::uint8_t has_kernels = 0;   ///< With the buffers of an exchange.
  std::uint8_t has_segments = 0;  ///< `segments` may be opened.
  std::array<char, 222> reason{};
};

[[nodiscard]] rendezvous::bytes encode(const path_offer& offer);

/// Throws: internal for bytes that are no offer.
[[nodiscard]] path_offer decode_offer(const rendezvous::bytes& bytes);

/// Shortened where it does not fit.
void set_text(std::span<char> to, std::string_view text) noexcept;
[[nodiscard]] std::string_view text_of(std::span<const char> from) noexcept;

/// This boot of this machine; the same for all its processes.
[[nodiscard]] std::string this_host();

/// Whether all ranks are on one host.
[[nodiscard]] bool are_near(std::span<const path_offer> offers) noexcept;

/// The first rank without, and why.
struct missing_part {
  int rank = -1;
  std::string reason;
};

[[nodiscard]] std::optional<missing_part> first_without(std::span<const path_offer> offers,
                                                        std::uint8_t path_offer::* part);

}  // namespace spark_comm::detail
