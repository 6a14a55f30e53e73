// SPDX-License-Identifier: AGPL-3.0-only
// Which entry of a RoCE port's GID table connections are made with.
#pragma once

#include <spark_comm/core/export.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace spark_comm::nccl {

/// How an entry's packets travel.
enum class gid_type : std::uint8_t {
  infiniband,  ///< InfiniBand, not Ethernet.
  roce_v1,     ///< Ethernet frames: not routed, and often filtered.
  roce_v2,     ///< UDP over IP.
};

/// One entry of a port's table, as the kernel shows it: `0000:0000:0000:0000:0000:ffff:c000:0209`.
struct gid_entry {
  int index = 0;
  std::string gid;
  gid_type type = gid_type::roce_v2;
};

/// Made from an IPv4 address (`::ffff:0:0/96`).
[[nodiscard]] SPARK_COMM_API bool is_ipv4(const gid_entry& entry);

/// Valid on one cable only: made from `fe80::/10` or from 169.254.0.0/16.
[[nodiscard]] SPARK_COMM_API bool is_link_local(const gid_entry& entry);

/// Not filled in.
[[nodiscard]] SPARK_COMM_API bool is_empty(const gid_entry& entry);

struct gid_choice {
  int index = -1;
  std::string warning;  ///< Why the entry that was asked for may not work; empty: nothing to say.
};

/// The entry to use: the one that was asked for, or the first RoCE v2 entry of a routable IPv4
/// address, which NCCL since 2.21 also prefers.
///
/// `asked` is the value of NCCL_IB_GID_INDEX; negative counts as unset.
/// Throws: invalid_argument when the entry asked for is not there; invalid_usage when nothing was
/// asked for and no entry is fit. Both list the table.
[[nodiscard]] SPARK_COMM_API gid_choice choose_gid(std::span<const gid_entry> table,
                                                   std::optional<int> asked);

}  // namespace spark_comm::nccl
