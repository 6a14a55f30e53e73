// SPDX-License-Identifier: AGPL-3.0-only
// What it shows: reduce_scatter followed by all_gather is an all_reduce, in two halves.
//                Sharded layers use the halves apart: each rank works on its block in between.
// Needs:         nothing; runs on the host runtime where there is no GPU.
// Run:           spark-comm launch -n 2 -- ./03_all_gather_reduce_scatter
// Expected:      rank 0: block 30, whole 30 33     (two ranks: block r holds 30 + 3 x r)
//                rank 1: block 33, whole 30 33
// Can go wrong:  the long buffer is world size x the short one; other lengths are refused at once.
// Next:          04_streams_and_events
#include <spark_comm/spark_comm.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace {

// Rank r gives 10 x (r + 1) + block x (r + 1) to each block.
std::vector<float> contribution(int rank, int world) {
  std::vector<float> values;
  for (int block = 0; block < world; ++block) {
    values.push_back(static_cast<float>((10 + block) * (rank + 1)));
  }
  return values;
}

int run() {
  using namespace std::chrono_literals;
  const auto runtime = spark_comm::runtime::load(spark_comm::runtime_kind::automatic);
  auto comm = spark_comm::communicator::join(runtime, spark_comm::world::from_environment());
  const auto& device = comm.device();
  const auto stream = device.create_stream();

  std::vector<float> values = contribution(comm.rank(), comm.world_size());
  const std::size_t bytes = values.size() * sizeof(float);
  const auto whole = spark_comm::cuda::device_buffer::allocate(device, bytes);
  const auto block = spark_comm::cuda::device_buffer::allocate(device, sizeof(float));
  copy_async(device, whole.address(), values.data(), bytes, stream);

  reduce_scatter<float>(
      comm, whole.as<float>(), block.as<float>(), spark_comm::reduce_op::sum, stream);
  all_gather<float>(comm, block.as<float>(), whole.as<float>(), stream);

  float mine = 0;
  copy_async(device, &mine, block.address(), sizeof mine, stream);
  copy_async(device, values.data(), whole.address(), bytes, stream);
  if (comm.wait(stream, 10s) == spark_comm::wait_result::timed_out) {
    std::fprintf(stderr, "rank %d: no result after 10 s\n", comm.rank());
    return 4;
  }
  std::printf("rank %d: block %g, whole", comm.rank(), mine);
  for (const float value : values) {
    std::printf(" %g", value);
  }
  std::printf("\n");
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
