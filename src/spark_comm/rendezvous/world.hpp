// SPDX-License-Identifier: AGPL-3.0-only
// Who takes part and where they meet.
#pragma once

#include <spark_comm/core/export.hpp>

#include <string>

namespace spark_comm {

/// A rank's place in the world, and the address at which the ranks meet.
struct SPARK_COMM_API world {
  /// `host:port`, `[ipv6]:port`, or a name with a port. Rank 0 (the head) listens there. Port 0 is
  /// for a head that reports its port in another way. Or `file:///path` in a folder that all ranks
  /// see: the head listens where it likes and says so there.
  std::string address;
  int rank = 0;
  int world_size = 1;

  /// From the first launcher whose variables are complete: our own (`SPARK_COMM_ADDRESS`, `_RANK`,
  /// `_WORLD_SIZE`), torchrun, Open MPI or PMIx, SLURM. Without any: rank 0 of 1.
  /// Throws: invalid_argument naming the variable that is missing or not a number.
  [[nodiscard]] static world from_environment();
};

}  // namespace spark_comm
