// SPDX-License-Identifier: AGPL-3.0-only
// What it shows: the main job from C. Every rank gives a vector, every rank gets the sum.
// Needs:         nothing; runs on the host runtime where there is no GPU.
// Build:         cc all_reduce.c $(pkg-config --cflags --libs spark_comm)
// Run:           spark-comm launch -n 2 -- ./a.out
// Expected:      rank 0: 3 3 3 3
//                rank 1: 3 3 3 3     (in either order)
// Can go wrong:  every call answers a code, and gives an error that says who, what, where and what
// next.
#include <spark_comm/spark_comm.h>

#include <stdio.h>
#include <stdlib.h>

static const int64_t second = 1000000000;

// Ends the program with the error's line, unless the call went well.
static void check(spark_comm_code code, spark_comm_error* failure) {
  if (code != SPARK_COMM_OK) {
    fprintf(stderr, "%s\n", spark_comm_error_line(failure));
    spark_comm_error_destroy(failure);
    exit(4);
  }
}

int main(void) {
  spark_comm_error* failure = NULL;
  spark_comm_runtime* runtime = NULL;
  check(spark_comm_runtime_load(SPARK_COMM_RUNTIME_AUTOMATIC, NULL, &runtime, &failure), failure);

  // The place in the world comes from the environment that a launcher made.
  const spark_comm_join_options options = {.struct_size = sizeof options,
                                           .deadline_ns = 20 * second};
  spark_comm_communicator* comm = NULL;
  check(spark_comm_communicator_join(runtime, NULL, &options, &comm, &failure), failure);
  const spark_comm_device* device = spark_comm_communicator_device(comm);
  const int rank = spark_comm_communicator_rank(comm);

  float values[4];
  for (int i = 0; i < 4; ++i) {
    values[i] = (float)(rank + 1);
  }
  spark_comm_stream* owned_stream = NULL;
  check(spark_comm_stream_create(device, &owned_stream, &failure), failure);
  const spark_comm_native_stream stream = spark_comm_stream_native(owned_stream);
  spark_comm_device_buffer* buffer = NULL;
  check(spark_comm_device_buffer_allocate(device, sizeof values, &buffer, &failure), failure);
  void* x = spark_comm_device_buffer_address(buffer);

  check(spark_comm_copy_async(device, x, values, sizeof values, stream, &failure), failure);
  check(spark_comm_all_reduce(
            comm, x, x, 4, SPARK_COMM_FLOAT32, SPARK_COMM_SUM, stream, NULL, &failure),
        failure);
  check(spark_comm_copy_async(device, values, x, sizeof values, stream, &failure), failure);

  spark_comm_progress progress = SPARK_COMM_PENDING;
  check(spark_comm_communicator_wait(comm, stream, 10 * second, &progress, &failure), failure);
  if (progress != SPARK_COMM_DONE) {
    fprintf(stderr, "rank %d: no result after 10 s\n", rank);
    return 4;
  }
  printf("rank %d: %g %g %g %g\n", rank, values[0], values[1], values[2], values[3]);

  check(spark_comm_communicator_close(comm, 5 * second, &failure), failure);
  spark_comm_device_buffer_destroy(buffer);
  spark_comm_stream_destroy(owned_stream);
  spark_comm_communicator_destroy(comm);
  spark_comm_runtime_destroy(runtime);
  return 0;
}
