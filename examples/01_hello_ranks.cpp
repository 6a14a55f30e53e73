// SPDX-License-Identifier: AGPL-3.0-only
// What it shows: ranks meet, say who they are, wait for each other and part in order.
// Needs:         nothing; runs on the host runtime where there is no GPU.
// Run:           spark-comm launch -n 2 -- ./01_hello_ranks
// Expected:      rank 0 of 2 on device 0: ready
//                rank 1 of 2 on device 1: ready     (in either order)
// Can go wrong:  a rank that is not started ends the join of the others at its deadline, naming it.
// Next:          02_all_reduce
#include <spark_comm/spark_comm.hpp>

#include <chrono>
#include <cstdio>
#include <string>

int main() {
  using namespace std::chrono_literals;
  try {
    const auto runtime = spark_comm::runtime::load(spark_comm::runtime_kind::automatic);
    auto comm = spark_comm::communicator::join(
        runtime, spark_comm::world::from_environment(), {.name = "hello", .deadline = 30s});

    spark_comm::barrier(comm, 5s);
    std::printf("rank %d of %d on device %d: %s\n",
                comm.rank(),
                comm.world_size(),
                comm.device().ordinal(),
                std::string{name_of(comm.state())}.c_str());

    comm.close(5s);
    return 0;
  } catch (const spark_comm::error& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 4;
  }
}
