// SPDX-License-Identifier: AGPL-3.0-only
// A place in the world from what a launcher left in the environment.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/rendezvous/world.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace spark_comm::rendezvous {

/// A variable's value; nothing if it is not set. Tests pass a table.
using variable_source = std::function<std::optional<std::string>(std::string_view name)>;

/// The process's environment.
[[nodiscard]] SPARK_COMM_API std::optional<std::string> process_variable(std::string_view name);

/// Every variable that a place is read from, as it was set. Read once.
struct launcher_variables {
  std::optional<std::string> spark_comm_address;     ///< SPARK_COMM_ADDRESS: where the ranks meet.
  std::optional<std::string> spark_comm_rank;        ///< SPARK_COMM_RANK
  std::optional<std::string> spark_comm_world_size;  ///< SPARK_COMM_WORLD_SIZE
  std::optional<std::string> master_addr;            ///< MASTER_ADDR: host of rank 0 (torchrun).
  std::optional<std::string> master_port;            ///< MASTER_PORT
  std::optional<std::string> torchrun_rank;          ///< RANK
  std::optional<std::string> torchrun_world_size;    ///< WORLD_SIZE
  std::optional<std::string> open_mpi_rank;          ///< OMPI_COMM_WORLD_RANK
  std::optional<std::string> open_mpi_world_size;    ///< OMPI_COMM_WORLD_SIZE
  std::optional<std::string> pmix_rank;              ///< PMIX_RANK
  std::optional<std::string> pmix_world_size;        ///< PMIX_SIZE, which some PMIx launchers set.
  std::optional<std::string> slurm_rank;             ///< SLURM_PROCID
  std::optional<std::string> slurm_world_size;       ///< SLURM_NTASKS
  std::optional<std::string> slurm_nodes;  ///< SLURM_JOB_NODELIST: its first node is the head's.

  [[nodiscard]] SPARK_COMM_API static launcher_variables read(const variable_source& source);
};

/// The place that the variables give. A launcher counts as present when its rank is set (our own:
/// any of its three); the first present one of our own, torchrun, Open MPI, PMIx and SLURM decides.
/// Without any: rank 0 of 1.
///
/// The address is SPARK_COMM_ADDRESS, or MASTER_ADDR and MASTER_PORT, or, under SLURM, the first
/// node of the job with MASTER_PORT. Throws: invalid_argument naming the variable that is missing
/// or wrong.
[[nodiscard]] SPARK_COMM_API world place_from(const launcher_variables& variables);

/// The first host name of a SLURM node list such as `node[03-07,9],login1`.
/// Throws: invalid_argument for a list that cannot be read.
[[nodiscard]] SPARK_COMM_API std::string first_slurm_node(std::string_view list);

}  // namespace spark_comm::rendezvous
