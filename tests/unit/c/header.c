// SPDX-License-Identifier: AGPL-3.0-only
// That the C interface is C: compiled as C99 with all warnings, never run.
#include <spark_comm/spark_comm.h>

spark_comm_join_options unit_c_join_options(void);

spark_comm_join_options unit_c_join_options(void) {
  const spark_comm_join_options options = {.struct_size = sizeof options,
                                           .device = {.value = 1, .is_set = 1}};
  return options;
}
