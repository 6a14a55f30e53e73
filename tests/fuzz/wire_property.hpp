// SPDX-License-Identifier: AGPL-3.0-only
// What must hold of the decoders for any bytes: they end, read nothing outside, and whatever they
// accept is exactly what the encoder writes for it.
#pragma once

#include <spark_comm/rendezvous/detail/wire.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace spark_comm::rendezvous::detail {

template <typename Message>
bool is_canonical(const std::optional<Message>& decoded, std::span<const std::byte> from) {
  return !decoded || std::ranges::equal(encode(*decoded), from);
}

/// False names a fault in a decoder or its encoder.
inline bool decoders_hold(std::span<const std::byte> input) {
  bool all = true;
  const auto hello = decode_hello(input);
  if (hello && hello->version == protocol_version) {
    all = is_canonical(hello, input);
  }
  if (input.size() >= frame_header_bytes) {
    const auto raw = input.first<frame_header_bytes>();
    const auto header = decode_header(raw);
    all = all && (!header || std::ranges::equal(encode_header(*header), raw));
  }
  return all && is_canonical(decode_refusal(input), input) &&
         is_canonical(decode_waiting(input), input) && is_canonical(decode_roster(input), input) &&
         is_canonical(decode_round(input), input) &&
         is_canonical(decode_mesh_hello(input), input) && is_canonical(decode_step(input), input);
}

}  // namespace spark_comm::rendezvous::detail
