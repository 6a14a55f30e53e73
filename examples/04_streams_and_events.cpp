// SPDX-License-Identifier: AGPL-3.0-only
// What it shows: an engine computes on one stream and communicates on another; events order the two
//                on the device, and the host waits only at the end.
// Needs:         nothing; runs on the host runtime where there is no GPU.
// Run:           spark-comm launch -n 2 -- ./04_streams_and_events
// Expected:      rank 0: 20 steps, last sum 40
//                rank 1: 20 steps, last sum 40
// Can go wrong:  waiting for an event that was never recorded is an error here, not "done".
// Next:          05_groups_and_send_recv
#include <spark_comm/spark_comm.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace {

constexpr int steps = 20;

int run() {
  using namespace std::chrono_literals;
  const auto runtime = spark_comm::runtime::load(spark_comm::runtime_kind::automatic);
  auto comm = spark_comm::communicator::join(runtime, spark_comm::world::from_environment());
  const auto& device = comm.device();
  const auto compute = device.create_stream();
  const auto communicate = device.create_stream();
  auto computed = device.create_event();
  auto reduced = device.create_event();

  const auto x = spark_comm::cuda::device_buffer::allocate(device, sizeof(std::int32_t));
  std::int32_t sum = 0;
  for (int step = 1; step <= steps; ++step) {
    // "Compute": four bytes of value `step` would be a kernel in an engine.
    const std::int32_t value = step;
    copy_async(device, x.address(), &value, sizeof value, compute);
    computed.record(compute);

    communicate.wait_for(computed);
    all_reduce(comm, x.as<std::int32_t>(), spark_comm::reduce_op::sum, communicate);
    copy_async(device, &sum, x.address(), sizeof sum, communicate);
    reduced.record(communicate);

    compute.wait_for(reduced);  // the next step overwrites x
    if (comm.wait(compute, 10s) == spark_comm::wait_result::timed_out) {
      std::fprintf(stderr, "rank %d: step %d is not over after 10 s\n", comm.rank(), step);
      return 4;
    }
  }
  std::printf("rank %d: %d steps, last sum %d\n", comm.rank(), steps, sum);
  comm.close(5s);
  return 0;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const spark_comm::error& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 4;
  }
}
