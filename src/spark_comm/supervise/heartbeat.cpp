// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/supervise/detail/wire.hpp>
#include <spark_comm/supervise/heartbeat.hpp>
#include <spark_comm/supervise/lane_compare.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/signature_log.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace spark_comm {
namespace {

using detail::wire_reader;
using detail::wire_writer;

constexpr std::uint8_t protocol_mark = 0x53;
constexpr std::uint8_t protocol_version = 1;
constexpr std::size_t record_bytes = 28;
constexpr std::uint32_t known_flags = static_cast<std::uint32_t>(operation_flag::in_group) |
                                      static_cast<std::uint32_t>(operation_flag::captured) |
                                      static_cast<std::uint32_t>(operation_flag::uneven);

void put(wire_writer& out, const operation_record& record) {
  out.put(record.kind);
  out.put(record.dtype);
  out.put(record.op);
  out.put(record.path);
  out.put(record.root_or_peer);
  out.put(record.flags);
  out.put(record.count_elements);
  out.put(record.sequence);
}

operation_record get_record(wire_reader& in, std::uint64_t ordinal) {
  operation_record record;
  record.kind = in.get<operation_kind>();
  record.dtype = in.get<data_type>();
  record.op = in.get<reduce_op>();
  record.path = in.get<path_kind>();
  record.root_or_peer = in.get<std::int32_t>();
  record.flags = in.get<std::uint32_t>();
  record.count_elements = in.get<std::uint64_t>();
  record.sequence = in.get<std::uint64_t>();
  record.ordinal = ordinal;
  in.require(name_of(record.kind) != "unknown" && name_of(record.dtype) != "unknown" &&
             name_of(record.op) != "unknown" && name_of(record.path) != "unknown" &&
             (record.flags & ~known_flags) == 0);
  return record;
}

void put(wire_writer& out, const lane_report& lane) {
  out.put(lane.submitted);
  out.put(lane.completed);
  out.put(lane.base_signature);
  out.put(static_cast<std::uint16_t>(lane.tail.size()));
  for (const operation_record& record : lane.tail) {
    put(out, record);
  }
}

lane_report get_lane(wire_reader& in) {
  lane_report lane;
  lane.submitted = in.get<std::uint64_t>();
  lane.completed = in.get<std::uint64_t>();
  lane.base_signature = in.get<std::uint64_t>();
  const std::size_t length = in.get<std::uint16_t>();
  in.require(length <= most_history && length <= lane.submitted &&
             length * record_bytes <= in.rest_bytes());
  if (!in.is_good()) {
    return {};
  }
  lane.tail.reserve(length);
  for (std::size_t each = 0; each < length; ++each) {
    lane.tail.push_back(get_record(in, lane.submitted - length + each + 1));
  }
  return lane;
}

lane_kind get_lane_kind(wire_reader& in) {
  const auto kind = in.get<lane_kind>();
  in.require(kind <= lane_kind::inbound);
  return kind;
}

void put(wire_writer& out, const heartbeat& beat) {
  out.put(beat.number);
  out.put(beat.last_sequence);
  put(out, beat.collectives);
  put(out, beat.outbound);
  put(out, beat.inbound);
}

void put(wire_writer& out, const failure_notice& notice) {
  out.put(notice.code);
  out.put(notice.origin);
  out.put(static_cast<std::uint8_t>(notice.sequence.has_value()));
  out.put(notice.sequence.value_or(0));
  out.put_text(notice.text, most_text_bytes);
  const std::size_t blamed = std::min(notice.peers.size(), most_blamed_peers);
  out.put(static_cast<std::uint8_t>(blamed));
  for (std::size_t each = 0; each < blamed; ++each) {
    out.put(notice.peers[each]);
  }
}

void put(wire_writer& out, const history_request& request) {
  out.put(request.lane);
  out.put(request.first);
}

void put(wire_writer& out, const history_reply& reply) {
  out.put(reply.lane);
  put(out, reply.part);
}

void put(wire_writer& /*out*/, const farewell& /*nothing*/) {}

heartbeat get_heartbeat(wire_reader& in) {
  heartbeat beat;
  beat.number = in.get<std::uint64_t>();
  beat.last_sequence = in.get<std::uint64_t>();
  beat.collectives = get_lane(in);
  beat.outbound = get_lane(in);
  beat.inbound = get_lane(in);
  return beat;
}

failure_notice get_failure(wire_reader& in) {
  failure_notice notice;
  notice.code = in.get<errc>();
  notice.origin = in.get<std::int32_t>();
  const auto has_sequence = in.get<std::uint8_t>();
  const auto sequence = in.get<std::uint64_t>();
  notice.text = in.get_text(most_text_bytes);
  const std::size_t blamed = in.get<std::uint8_t>();
  in.require(name_of(notice.code) != "unknown" && has_sequence <= 1 &&
             (has_sequence == 1 || sequence == 0) && blamed <= most_blamed_peers);
  for (std::size_t each = 0; in.is_good() && each < blamed; ++each) {
    notice.peers.push_back(in.get<std::int32_t>());
  }
  if (has_sequence == 1) {
    notice.sequence = sequence;
  }
  return notice;
}

history_request get_request(wire_reader& in) {
  history_request request;
  request.lane = get_lane_kind(in);
  request.first = in.get<std::uint64_t>();
  return request;
}

history_reply get_reply(wire_reader& in) {
  history_reply reply;
  reply.lane = get_lane_kind(in);
  reply.part = get_lane(in);
  return reply;
}

/// The type on the wire is the place in the variant.
lifeline_message get_body(wire_reader& in, std::uint8_t type) {
  switch (type) {
    case 0:  return get_heartbeat(in);
    case 1:  return get_failure(in);
    case 2:  return get_request(in);
    case 3:  return get_reply(in);
    case 4:  return farewell{};
    default: in.require(false); return farewell{};
  }
}

}  // namespace

std::vector<std::byte> encode(std::uint32_t generation, const lifeline_message& message) {
  wire_writer out;
  out.put(protocol_mark);
  out.put(protocol_version);
  out.put(static_cast<std::uint8_t>(message.index()));
  out.put(generation);
  std::visit([&](const auto& body) { put(out, body); }, message);
  return out.take();
}

std::optional<decoded_message> decode(std::span<const std::byte> bytes) {
  wire_reader in{bytes};
  in.require(in.get<std::uint8_t>() == protocol_mark);
  in.require(in.get<std::uint8_t>() == protocol_version);
  const auto type = in.get<std::uint8_t>();
  const auto generation = in.get<std::uint32_t>();
  lifeline_message message = get_body(in, type);
  if (!in.is_good() || in.rest_bytes() != 0) {
    return std::nullopt;
  }
  return decoded_message{.generation = generation, .message = std::move(message)};
}

}  // namespace spark_comm
