// SPDX-License-Identifier: AGPL-3.0-only
// What it shows: the main job. Every rank gives a vector, every rank gets the sum.
// Needs:         nothing; runs on the host runtime where there is no GPU.
// Run:           spark-comm launch -n 2 -- ./02_all_reduce
// Expected:      rank 0: 3 3 3 3
//                rank 1: 3 3 3 3     (in either order)
// Can go wrong:  ranks that pass different counts: `spark-comm demo mismatch` shows what is said.
// Next:          03_all_gather_reduce_scatter
#include <spark_comm/spark_comm.hpp>

#include <array>
#include <chrono>
#include <cstdio>

int main() {
  using namespace std::chrono_literals;
  try {
    const auto runtime = spark_comm::runtime::load(spark_comm::runtime_kind::automatic);
    auto comm = spark_comm::communicator::join(runtime, spark_comm::world::from_environment());
    const auto stream = comm.device().create_stream();

    std::array<float, 4> values{};
    values.fill(static_cast<float>(comm.rank() + 1));
    const auto x = spark_comm::cuda::device_buffer::allocate(comm.device(), sizeof values);
    copy_async(comm.device(), x.address(), values.data(), sizeof values, stream);

    all_reduce(comm, x.as<float>(), spark_comm::reduce_op::sum, stream);

    copy_async(comm.device(), values.data(), x.address(), sizeof values, stream);
    if (comm.wait(stream, 10s) == spark_comm::wait_result::timed_out) {
      std::fprintf(stderr, "rank %d: no result after 10 s\n", comm.rank());
      return 4;
    }
    std::printf("rank %d: %g %g %g %g\n", comm.rank(), values[0], values[1], values[2], values[3]);

    comm.close(5s);
    return 0;
  } catch (const spark_comm::error& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 4;
  }
}
