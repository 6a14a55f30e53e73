// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/paths/detail/path_set.hpp>
#include <spark_comm/paths/path_of.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/supervise/operation.hpp>

namespace spark_comm {

path_kind path_of(const communicator& comm, const path_query& asked) {
  if (comm.world_size() == 1) {
    return path_kind::local;
  }
  const detail::path_set& paths = detail::paths_of(comm.core());
  return choose_path(paths.table(), asked, paths.capabilities());
}

const path_capabilities& capabilities_of(const communicator& comm) {
  return detail::paths_of(comm.core()).capabilities();
}

}  // namespace spark_comm
