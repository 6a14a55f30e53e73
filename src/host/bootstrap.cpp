// SPDX-License-Identifier: AGPL-3.0-only
#include "bootstrap.hpp"

#include "last_error.hpp"
#include "nccl_abi.hpp"
#include "polling.hpp"
#include "segment.hpp"
#include "segment_layout.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <unistd.h>
#include <vector>

namespace spark_comm::host::nccl {
namespace {

int refuse_aborted() {
  return refuse(results::internal_error, "aborted while waiting for the other ranks");
}

// Closes an open bootstrap; a complete one stays what it is.
int close_bootstrap(segment_header& header, int code) noexcept {
  auto expected = bootstrap_state::open;
  header.state.compare_exchange_strong(expected, bootstrap_state::closed);
  return code;
}

int claim_seat(segment_header& header, const arrival& self) {
  std::int32_t world_size = 0;
  if (!header.world_size.compare_exchange_strong(world_size, self.world_size) &&
      world_size != self.world_size) {
    return close_bootstrap(
        header,
        refuse(results::invalid_usage,
               "rank {} says that there are {} ranks, an earlier one said {}: bootstrap closed",
               self.rank,
               self.world_size,
               world_size));
  }
  arrival_line& seat = header.ranks[static_cast<std::size_t>(self.rank)];
  if (seat.is_claimed.exchange(1) != 0) {
    return close_bootstrap(
        header,
        refuse(results::invalid_usage,
               "rank {} is taken by process {}: two ranks have one number, or the unique id is "
               "used a second time",
               self.rank,
               seat.pid.load()));
  }
  seat.version = version_code;
  seat.pid = ::getpid();
  seat.device = self.device;
  return results::success;
}

int compare_versions(const segment_header& header, int world_size) {
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(world_size); ++rank) {
    if (header.ranks[rank].version != version_code) {
      return refuse(results::invalid_usage,
                    "Mismatched NCCL version detected : rank {} version {}, mine {}",
                    rank,
                    header.ranks[rank].version,
                    version_code);
    }
  }
  return results::success;
}

int wait_for_all(segment_header& header, const arrival& self, const std::atomic<bool>& aborted) {
  // Release: the seat that was filled in is visible to whoever counts everybody as arrived.
  const std::uint32_t others = header.arrived.fetch_add(1, std::memory_order_acq_rel);
  if (others + 1 == static_cast<std::uint32_t>(self.world_size)) {
    auto expected = bootstrap_state::open;
    header.state.compare_exchange_strong(expected, bootstrap_state::complete);
  }
  const bool is_complete = poll_until(
      // Acquire: pairs with the last arriver, who had seen all seats.
      [&] { return header.state.load(std::memory_order_acquire) == bootstrap_state::complete; },
      [&] { return aborted.load(std::memory_order_relaxed); });
  return is_complete ? compare_versions(header, self.world_size) : refuse_aborted();
}

}  // namespace

int join_segment(segment& shared,
                 std::uint64_t token,
                 const arrival& self,
                 const std::atomic<bool>& is_aborted) {
  if (const int code = shared.map(segment_layout::header_bytes()); code != results::success) {
    return code;
  }
  if (reinterpret_cast<const segment_header*>(shared.data())->token != token) {
    return refuse(results::system_error, "the unique id's shared memory belongs to another id");
  }
  const segment_layout layout{static_cast<std::size_t>(self.world_size)};
  const std::size_t own = layout.staging_at(static_cast<std::size_t>(self.rank));
  if (const int code = shared.map(layout.total_bytes()); code != results::success) {
    return code;
  }
  if (const int code = shared.reserve(0, layout.staging_at(0)); code != results::success) {
    return code;
  }
  if (const int code = shared.reserve(own, slot_count * slot_bytes); code != results::success) {
    return code;
  }
  // Last, because from here on the others count on this rank.
  if (const int code = claim_seat(*reinterpret_cast<segment_header*>(shared.data()), self);
      code != results::success) {
    return code;
  }
  return wait_for_all(*reinterpret_cast<segment_header*>(shared.data()), self, is_aborted);
}

exchange_lines& rank_exchange::lines(std::size_t rank) const noexcept {
  return *reinterpret_cast<exchange_lines*>(base_ + layout_.exchange_at(rank));
}

int rank_exchange::run(std::span<const std::byte> mine,
                       std::vector<std::byte>& all,
                       const std::atomic<bool>& is_aborted) {
  const std::scoped_lock lock{mutex_};
  exchange_lines& own = lines(static_cast<std::size_t>(rank_));
  const auto is_stopped = [&] { return is_aborted.load(std::memory_order_relaxed); };
  const auto everybody = [&](counter_line exchange_lines::* line, std::uint64_t rounds) {
    for (std::size_t rank = 0; rank < layout_.ranks; ++rank) {
      // Acquire: pairs with the release below, so that the payload (or its reading) is over.
      if ((lines(rank).*line).value.load(std::memory_order_acquire) < rounds) {
        return false;
      }
    }
    return true;
  };
  // The payload of the last round may be overwritten once everybody has read it.
  if (!poll_until([&] { return everybody(&exchange_lines::taken, rounds_); }, is_stopped)) {
    return refuse_aborted();
  }
  std::memcpy(own.payload.data(), mine.data(), mine.size());
  // Release: the payload is there when the counter says so.
  own.offered.value.store(++rounds_, std::memory_order_release);
  if (!poll_until([&] { return everybody(&exchange_lines::offered, rounds_); }, is_stopped)) {
    return refuse_aborted();
  }
  all.resize(layout_.ranks * mine.size());
  for (std::size_t rank = 0; rank < layout_.ranks; ++rank) {
    std::memcpy(all.data() + rank * mine.size(), lines(rank).payload.data(), mine.size());
  }
  // Release: the copies above are made before a peer sees that it may overwrite.
  own.taken.value.store(rounds_, std::memory_order_release);
  return results::success;
}

}  // namespace spark_comm::host::nccl
