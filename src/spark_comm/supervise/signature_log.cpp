// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/signature_lane.hpp>
#include <spark_comm/supervise/signature_log.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace spark_comm {

signature_log::signature_log(int world_size) {
  for (int peer = 0; peer < world_size; ++peer) {
    outbound_.emplace_back(pair_capacity);
    inbound_.emplace_back(pair_capacity);
  }
}

std::uint64_t signature_log::append(operation_record& record) noexcept {
  last_sequence_.store(record.sequence, std::memory_order_relaxed);
  if (lane_of(record.kind) != lane_kind::collectives) {
    return lane_for(record).append(record);
  }
  if (record.kind != operation_kind::group) {
    grouped_collectives_ += record.has(operation_flag::in_group) ? 1U : 0U;
    return collectives_.append(record);
  }
  record.count_elements = std::exchange(grouped_collectives_, 0);
  if (record.count_elements == 0) {
    // Sends and receives only: the other ranks may have no such group, and need none.
    record.ordinal = 0;
    return 0;
  }
  return collectives_.append(record);
}

void signature_log::complete(const operation_record& record) noexcept {
  lane_for(record).complete(record.ordinal);
}

signature_lane& signature_log::lane_for(const operation_record& record) noexcept {
  const auto peer = static_cast<std::size_t>(record.root_or_peer);
  switch (lane_of(record.kind)) {
    case lane_kind::outbound:    return outbound_[peer];
    case lane_kind::inbound:     return inbound_[peer];
    case lane_kind::collectives: break;
  }
  return collectives_;
}

const signature_lane& signature_log::lane(lane_kind kind, int peer) const noexcept {
  switch (kind) {
    case lane_kind::outbound:    return outbound_[static_cast<std::size_t>(peer)];
    case lane_kind::inbound:     return inbound_[static_cast<std::size_t>(peer)];
    case lane_kind::collectives: break;
  }
  return collectives_;
}

}  // namespace spark_comm
