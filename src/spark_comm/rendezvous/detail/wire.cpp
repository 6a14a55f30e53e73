// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace spark_comm::rendezvous::detail {
namespace {

constexpr std::array<std::byte, 8> magic = {std::byte{'s'},
                                            std::byte{'p'},
                                            std::byte{'r'},
                                            std::byte{'k'},
                                            std::byte{'c'},
                                            std::byte{'o'},
                                            std::byte{'m'},
                                            std::byte{'m'}};
constexpr std::size_t max_facts = 32;
constexpr std::size_t max_fact_name_bytes = 128;
constexpr std::size_t max_fact_value_bytes = 1024;
constexpr std::size_t max_address_bytes = 512;
constexpr std::size_t max_reason_bytes = 4096;

class writer {
 public:
  template <std::unsigned_integral T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      out_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
    }
  }

  void signed_number(std::int32_t value) { number(static_cast<std::uint32_t>(value)); }

  void raw(std::span<const std::byte> data) { out_.insert(out_.end(), data.begin(), data.end()); }

  /// Cut to `limit`, so that what is sent can always be read.
  void text(std::string_view value, std::size_t limit) {
    value = value.substr(0, limit);
    number(static_cast<std::uint32_t>(value.size()));
    raw(std::as_bytes(std::span{value}));
  }

  [[nodiscard]] bytes take() { return std::move(out_); }

 private:
  bytes out_;
};

/// Reads on as long as the bytes last; after the first shortage every answer is empty and `is_done`
/// is false for good.
class reader {
 public:
  explicit reader(std::span<const std::byte> data) : rest_(data) {}

  template <std::unsigned_integral T>
  T number() {
    const auto data = raw(sizeof(T));
    std::uint64_t value = 0;
    for (std::size_t i = data.size(); i > 0; --i) {
      value = (value << 8) | std::to_integer<std::uint64_t>(data[i - 1]);
    }
    return static_cast<T>(value);
  }

  std::int32_t signed_number() { return static_cast<std::int32_t>(number<std::uint32_t>()); }

  std::span<const std::byte> raw(std::size_t count) {
    if (failed_ || count > rest_.size()) {
      failed_ = true;
      return {};
    }
    const auto data = rest_.first(count);
    rest_ = rest_.subspan(count);
    return data;
  }

  template <std::size_t N>
  std::array<std::byte, N> block() {
    std::array<std::byte, N> out{};
    std::ranges::copy(raw(N), out.begin());
    return out;
  }

  std::string text(std::size_t limit) {
    const auto data = raw(count(limit));
    std::string out(data.size(), '\0');
    std::ranges::transform(
        data, out.begin(), [](std::byte b) { return static_cast<char>(std::to_integer<int>(b)); });
    return out;
  }

  /// A number of things that follow; more than `limit` is a failure.
  std::size_t count(std::size_t limit) {
    const std::size_t value = number<std::uint32_t>();
    failed_ = failed_ || value > limit;
    return failed_ ? 0 : value;
  }

  std::span<const std::byte> rest() { return raw(rest_.size()); }

  void fail() { failed_ = true; }

  [[nodiscard]] bool has_failed() const { return failed_; }

  /// All was there, and nothing is left over.
  [[nodiscard]] bool is_done() const { return !failed_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool failed_ = false;
};

template <typename Message>
std::optional<Message> if_done(const reader& in, Message message) {
  return in.is_done() ? std::optional<Message>{std::move(message)} : std::nullopt;
}

bool is_known(std::uint8_t kind) {
  switch (static_cast<frame_kind>(kind)) {
    case frame_kind::hello:
    case frame_kind::refusal:
    case frame_kind::waiting:
    case frame_kind::roster:
    case frame_kind::ready:
    case frame_kind::commit:
    case frame_kind::committed:
    case frame_kind::ping:
    case frame_kind::pong:
    case frame_kind::mesh_hello:
    case frame_kind::mesh_welcome:
    case frame_kind::busy:
    case frame_kind::remark:
    case frame_kind::gather:
    case frame_kind::broadcast:
    case frame_kind::received:
    case frame_kind::message:
    case frame_kind::farewell:     return true;
  }
  return false;
}

membership read_membership(reader& in) {
  const auto who = in.number<std::uint8_t>();
  if (who > static_cast<std::uint8_t>(membership::survivors)) {
    in.fail();
    return membership::whole_world;
  }
  return static_cast<membership>(who);
}

fact read_fact(reader& in) {
  fact out;
  out.name = in.text(max_fact_name_bytes);
  out.value = in.text(max_fact_value_bytes);
  const auto rule = in.number<std::uint8_t>();
  if (rule > static_cast<std::uint8_t>(fact_rule::distinct)) {
    in.fail();
    return out;
  }
  out.rule = static_cast<fact_rule>(rule);
  out.note = in.text(max_fact_value_bytes);
  return out;
}

}  // namespace

std::array<std::byte, frame_header_bytes> encode_header(frame_header header) noexcept {
  return {static_cast<std::byte>(header.body_bytes),
          static_cast<std::byte>(header.body_bytes >> 8),
          static_cast<std::byte>(header.body_bytes >> 16),
          static_cast<std::byte>(header.body_bytes >> 24),
          static_cast<std::byte>(header.kind)};
}

std::optional<frame_header> decode_header(
    std::span<const std::byte, frame_header_bytes> raw) noexcept {
  reader in{raw};
  const auto body_bytes = in.number<std::uint32_t>();
  const auto kind = in.number<std::uint8_t>();
  if (!is_known(kind)) {
    return std::nullopt;
  }
  return frame_header{.body_bytes = body_bytes, .kind = static_cast<frame_kind>(kind)};
}

bytes encode(const hello_message& message) {
  writer out;
  out.raw(magic);
  out.number(message.version);
  out.signed_number(message.world_size);
  out.signed_number(message.rank);
  out.number(message.generation);
  out.number(static_cast<std::uint8_t>(message.who));
  out.raw(message.process);
  out.text(message.listener, max_address_bytes);
  const std::size_t facts = std::min(message.facts.size(), max_facts);
  out.number(static_cast<std::uint32_t>(facts));
  for (const fact& each : std::span{message.facts}.first(facts)) {
    out.text(each.name, max_fact_name_bytes);
    out.text(each.value, max_fact_value_bytes);
    out.number(static_cast<std::uint8_t>(each.rule));
    out.text(each.note, max_fact_value_bytes);
  }
  return out.take();
}

std::optional<hello_message> decode_hello(std::span<const std::byte> body) {
  reader in{body};
  hello_message message;
  if (in.block<magic.size()>() != magic) {
    return std::nullopt;
  }
  message.version = in.number<std::uint32_t>();
  if (in.has_failed()) {
    return std::nullopt;
  }
  if (message.version != protocol_version) {
    return message;  // what follows is only known to the other version
  }
  message.world_size = in.signed_number();
  message.rank = in.signed_number();
  message.generation = in.number<std::uint64_t>();
  message.who = read_membership(in);
  message.process = in.block<std::tuple_size_v<nonce>>();
  message.listener = in.text(max_address_bytes);
  const std::size_t facts = in.count(max_facts);
  for (std::size_t i = 0; i < facts && !in.has_failed(); ++i) {
    message.facts.push_back(read_fact(in));
  }
  return if_done(in, std::move(message));
}

bytes encode(const refusal_message& message) {
  writer out;
  out.text(message.reason, max_reason_bytes);
  return out.take();
}

std::optional<refusal_message> decode_refusal(std::span<const std::byte> body) {
  reader in{body};
  refusal_message message{.reason = in.text(max_reason_bytes)};
  return if_done(in, std::move(message));
}

bytes encode(const waiting_message& message) {
  writer out;
  out.number(static_cast<std::uint32_t>(message.missing.size()));
  std::ranges::for_each(message.missing, [&](std::int32_t rank) { out.signed_number(rank); });
  return out.take();
}

std::optional<waiting_message> decode_waiting(std::span<const std::byte> body) {
  reader in{body};
  waiting_message message;
  const std::size_t missing = in.count(max_world_size);
  for (std::size_t i = 0; i < missing && !in.has_failed(); ++i) {
    message.missing.push_back(in.signed_number());
  }
  return if_done(in, std::move(message));
}

bytes encode(const roster_message& message) {
  writer out;
  out.number(message.round);
  out.number(message.generation);
  out.signed_number(message.host);
  out.raw(message.secret);
  const std::size_t ranks = std::min(message.members.size(), message.listeners.size());
  out.number(static_cast<std::uint32_t>(ranks));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    out.signed_number(message.members[rank]);
    out.text(message.listeners[rank], max_address_bytes);
  }
  return out.take();
}

std::optional<roster_message> decode_roster(std::span<const std::byte> body) {
  reader in{body};
  roster_message message;
  message.round = in.number<std::uint32_t>();
  message.generation = in.number<std::uint64_t>();
  message.host = in.signed_number();
  message.secret = in.block<std::tuple_size_v<token>>();
  const std::size_t ranks = in.count(max_world_size);
  for (std::size_t i = 0; i < ranks && !in.has_failed(); ++i) {
    message.members.push_back(in.signed_number());
    message.listeners.push_back(in.text(max_address_bytes));
  }
  return if_done(in, std::move(message));
}

bytes encode(round_message message) {
  writer out;
  out.number(message.round);
  return out.take();
}

std::optional<round_message> decode_round(std::span<const std::byte> body) {
  reader in{body};
  return if_done(in, round_message{.round = in.number<std::uint32_t>()});
}

bytes encode(const mesh_hello_message& message) {
  writer out;
  out.signed_number(message.rank);
  out.raw(message.secret);
  return out.take();
}

std::optional<mesh_hello_message> decode_mesh_hello(std::span<const std::byte> body) {
  reader in{body};
  mesh_hello_message message;
  message.rank = in.signed_number();
  message.secret = in.block<std::tuple_size_v<token>>();
  return if_done(in, message);
}

bytes encode(const step_message& message) {
  writer out;
  out.number(message.step);
  out.raw(message.payload);
  return out.take();
}

std::optional<step_message> decode_step(std::span<const std::byte> body) {
  reader in{body};
  step_message message;
  message.step = in.number<std::uint64_t>();
  message.payload = in.rest();
  return if_done(in, message);
}

}  // namespace spark_comm::rendezvous::detail
