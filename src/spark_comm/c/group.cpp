// SPDX-License-Identifier: AGPL-3.0-only
// Groups of operations.
#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/c/detail/handles.hpp>
#include <spark_comm/c/group.h>
#include <spark_comm/c/types.h>
#include <spark_comm/comm/communicator.hpp>

#include <memory>

spark_comm_code spark_comm_group_begin(spark_comm_communicator* communicator,
                                       spark_comm_group** group,
                                       spark_comm_error** failure) {
  return spark_comm::c::created(
      __func__, group, failure, [&](const auto& check) -> spark_comm::communicator& {
        return check.deref(communicator, "the communicator").value;
      });
}

spark_comm_code spark_comm_group_commit(spark_comm_group* group, spark_comm_error** failure) {
  const std::unique_ptr<spark_comm_group> owned{group};
  return spark_comm::c::guarded(__func__, failure, [&](const auto& check) {
    check.deref(owned.get(), "the group").value.commit();
  });
}

void spark_comm_group_drop(spark_comm_group* group) {
  delete group;
}
