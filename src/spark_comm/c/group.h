// SPDX-License-Identifier: AGPL-3.0-only
// The C interface: operations that are launched together.
#pragma once

#include <spark_comm/c/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spark_comm_group spark_comm_group;

/// From here to spark_comm_group_commit, operations of this thread on the communicator are
/// collected. May be nested; the outermost commit launches. Belongs to the thread that began it.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_group_begin(spark_comm_communicator* communicator,
                                                            spark_comm_group** group,
                                                            spark_comm_error** failure);

/// Launches what was collected. The group is destroyed, whatever the answer. Fails with the first
/// error of an operation inside, in case the program did not look at it; nothing is launched then.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_group_commit(spark_comm_group* group,
                                                             spark_comm_error** failure);

/// Ends it without launching anything, and destroys it. Null is fine.
SPARK_COMM_C_API void spark_comm_group_drop(spark_comm_group* group);

#ifdef __cplusplus
}
#endif
