// SPDX-License-Identifier: AGPL-3.0-only
// What it shows: a ring. Every rank sends to the next and receives from the one before, in one
// group:
//                outside a group all would wait in their sends.
// Needs:         nothing; runs on the host runtime where there is no GPU.
// Run:           spark-comm launch -n 3 -- ./05_groups_and_send_recv
// Expected:      rank 0: got 20 from rank 2
//                rank 1: got 0 from rank 0
//                rank 2: got 10 from rank 1
// Can go wrong:  a scope left by an exception, without commit(), launches nothing of its group.
// Next:          ../docs/architecture.md
#include <spark_comm/spark_comm.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace {

int run() {
  using namespace std::chrono_literals;
  const auto runtime = spark_comm::runtime::load(spark_comm::runtime_kind::automatic);
  auto comm = spark_comm::communicator::join(runtime, spark_comm::world::from_environment());
  const auto& device = comm.device();
  const auto stream = device.create_stream();
  const int world = comm.world_size();
  const spark_comm::rank_id next{(comm.rank() + 1) % world};
  const spark_comm::rank_id previous{(comm.rank() + world - 1) % world};

  const auto mine = spark_comm::cuda::device_buffer::allocate(device, sizeof(std::int32_t));
  const auto got = spark_comm::cuda::device_buffer::allocate(device, sizeof(std::int32_t));
  const std::int32_t value = 10 * comm.rank();
  copy_async(device, mine.address(), &value, sizeof value, stream);

  {
    spark_comm::group_scope group{comm};
    send(comm, mine.as<std::int32_t>(), next, stream);
    recv(comm, got.as<std::int32_t>(), previous, stream);
    group.commit();
  }

  std::int32_t received = -1;
  copy_async(device, &received, got.address(), sizeof received, stream);
  if (comm.wait(stream, 10s) == spark_comm::wait_result::timed_out) {
    std::fprintf(stderr, "rank %d: nothing received after 10 s\n", comm.rank());
    return 4;
  }
  std::printf("rank %d: got %d from rank %d\n", comm.rank(), received, previous.value);
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
