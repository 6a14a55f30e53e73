// SPDX-License-Identifier: AGPL-3.0-only
// What the bytes between ranks mean. Every number is little-endian and written byte by byte; every
// decoder takes any bytes and answers nothing rather than something wrong.
//
// A frame is: length of the body (4 bytes), kind (1 byte), body. The frame, the first two fields of
// a hello and the refusal stay as they are in all protocol versions, so that two versions can name
// each other.
#pragma once

#include <spark_comm/rendezvous/session.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::rendezvous::detail {

inline constexpr std::uint32_t protocol_version = 2;

/// Kinds of frames. Numbers are part of the protocol.
enum class frame_kind : std::uint8_t {
  hello = 1,          ///< Worker to head: who I am.
  refusal = 2,        ///< Head to worker: why not.
  waiting = 3,        ///< Head to a seated worker: you have a place; these ranks are missing.
  roster = 4,         ///< Head to worker: everybody is here, meet each other.
  ready = 5,          ///< Worker to head: I hold a connection to everybody of this round.
  commit = 6,         ///< Head to worker: the meeting is over, everybody is ready.
  committed = 7,      ///< Worker to head: I have heard it.
  ping = 8,           ///< Head to a seated worker: do you still answer?
  pong = 9,           ///< The answer.
  mesh_hello = 10,    ///< Worker to worker: rank and token of the roster.
  mesh_welcome = 11,  ///< The answer.
  busy = 12,          ///< To a hello, from a rank that is not meeting anybody: call again, and why.
  remark = 13,        ///< Head to a seated worker: a difference that does no harm.
  gather = 16,        ///< One rank's part of an all-gather.
  broadcast = 17,     ///< The head's bytes.
  received = 18,      ///< They have arrived.
  message = 32,       ///< A message of the running session.
  farewell = 33,  ///< The sender stops on purpose: its session ends, or it gives the meeting up.
};

inline constexpr std::size_t frame_header_bytes = 5;
inline constexpr std::size_t max_handshake_bytes = std::size_t{64} << 10;
inline constexpr std::size_t max_message_bytes = std::size_t{16} << 20;

struct frame_header {
  std::uint32_t body_bytes = 0;
  frame_kind kind = frame_kind::hello;
};

[[nodiscard]] std::array<std::byte, frame_header_bytes> encode_header(frame_header header) noexcept;
/// Nothing for a kind that does not exist.
[[nodiscard]] std::optional<frame_header> decode_header(
    std::span<const std::byte, frame_header_bytes> raw) noexcept;

/// A random number that tells two processes, or two attempts, apart.
using nonce = std::array<std::byte, 16>;
/// A random number that only the ranks of one round know.
using token = std::array<std::byte, 32>;

struct hello_message {
  std::uint32_t version = protocol_version;
  std::int32_t world_size = 0;
  std::int32_t rank = 0;
  std::uint64_t generation = 0;  ///< One more than the last that this rank was in.
  membership who = membership::whole_world;
  nonce process{};
  std::string listener;  ///< Where the other ranks reach this one.
  std::vector<fact> facts;
};

[[nodiscard]] bytes encode(const hello_message& message);
/// With another protocol version only `version` is filled. Nothing if it is no hello at all.
[[nodiscard]] std::optional<hello_message> decode_hello(std::span<const std::byte> body);

/// Body of refusal, busy and remark.
struct refusal_message {
  std::string reason;
};

[[nodiscard]] bytes encode(const refusal_message& message);
[[nodiscard]] std::optional<refusal_message> decode_refusal(std::span<const std::byte> body);

struct waiting_message {
  std::vector<std::int32_t> missing;
};

[[nodiscard]] bytes encode(const waiting_message& message);
[[nodiscard]] std::optional<waiting_message> decode_waiting(std::span<const std::byte> body);

struct roster_message {
  std::uint32_t round = 0;
  std::uint64_t generation = 0;  ///< Of all from now on: the highest that any of them named.
  std::int32_t host = 0;         ///< Who sends it, by its place in this list.
  token secret{};
  std::vector<std::int32_t>
      members;  ///< The ranks in their new order, by the number they came with.
  std::vector<std::string> listeners;  ///< In the same order.
};

[[nodiscard]] bytes encode(const roster_message& message);
[[nodiscard]] std::optional<roster_message> decode_roster(std::span<const std::byte> body);

/// Body of ready, commit and committed.
struct round_message {
  std::uint32_t round = 0;
};

[[nodiscard]] bytes encode(round_message message);
[[nodiscard]] std::optional<round_message> decode_round(std::span<const std::byte> body);

struct mesh_hello_message {
  std::int32_t rank = 0;
  token secret{};
};

[[nodiscard]] bytes encode(const mesh_hello_message& message);
[[nodiscard]] std::optional<mesh_hello_message> decode_mesh_hello(std::span<const std::byte> body);

/// Body of gather, broadcast and received: which collective step, then the caller's bytes.
struct step_message {
  std::uint64_t step = 0;
  std::span<const std::byte> payload;  ///< Lives as long as the body it was decoded from.
};

[[nodiscard]] bytes encode(const step_message& message);
[[nodiscard]] std::optional<step_message> decode_step(std::span<const std::byte> body);

}  // namespace spark_comm::rendezvous::detail
