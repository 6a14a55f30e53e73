// SPDX-License-Identifier: AGPL-3.0-only
// What it shows: two machines joined by a cable meet with a key, and how fast the cable is for a
//                small message and for a large one.
// Needs:         two machines with NCCL and a GPU each, and the same key in a file on both
//                (docs/security.md). One machine is enough to try it: give the head 127.0.0.1:29500
//                and start both commands there.
// Run:           this prints the command of each machine, to be run with NCCL_SOCKET_IFNAME set to
//                the interface of the cable:
//                spark-comm launch -n 1 --nodes 2 --head 192.168.100.1:29500 --key-file KEY
//                  -- ./06_two_machines
// Expected:      rank 0 of 2 on desk-a: sum 3, 16 KiB in T us, 8 MiB at B GB/s
//                rank 1 of 2 on desk-b: the same, each on its own machine
// Can go wrong:  another key, none, or another NCCL is a mismatch that names both sides; an address
//                at which nobody answers ends the join at its deadline with the last obstacle.
// Next:          docs/security.md
#include <spark_comm/spark_comm.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;

constexpr std::size_t small_bytes = std::size_t{16} << 10;
constexpr std::size_t large_bytes = std::size_t{8} << 20;

void wait(spark_comm::communicator& comm, const spark_comm::cuda::stream& stream) {
  if (comm.wait(stream, 20s) == spark_comm::wait_result::timed_out) {
    throw std::runtime_error{"no result after 20 s"};
  }
}

/// Seconds that an all-reduce of so many bytes takes, the host waiting for each.
double seconds_for(spark_comm::communicator& comm,
                   const spark_comm::cuda::device_buffer& x,
                   std::size_t bytes,
                   const spark_comm::cuda::stream& stream) {
  constexpr int rounds = 20;
  std::chrono::duration<double> taken{};
  for (int round = -3; round < rounds; ++round) {  // the first ones set connections up
    const auto before = std::chrono::steady_clock::now();
    all_reduce(comm,
               x.address(),
               x.address(),
               bytes / sizeof(float),
               spark_comm::data_type::float32,
               spark_comm::reduce_op::max,
               stream);
    wait(comm, stream);
    if (round >= 0) {
      taken += std::chrono::steady_clock::now() - before;
    }
  }
  return taken.count() / rounds;
}

void run() {
  const auto runtime = spark_comm::runtime::load(spark_comm::runtime_kind::automatic);
  auto comm = spark_comm::communicator::join(
      runtime, spark_comm::world::from_environment(), {.name = "two machines", .deadline = 60s});
  const auto stream = comm.device().create_stream();
  const auto x = spark_comm::cuda::device_buffer::allocate(comm.device(), large_bytes);

  float value = static_cast<float>(comm.rank() + 1);
  copy_async(comm.device(), x.address(), &value, sizeof value, stream);
  all_reduce(comm,
             x.address(),
             x.address(),
             1,
             spark_comm::data_type::float32,
             spark_comm::reduce_op::sum,
             stream);
  copy_async(comm.device(), &value, x.address(), sizeof value, stream);
  wait(comm, stream);

  const double small = seconds_for(comm, x, small_bytes, stream);
  const double large = seconds_for(comm, x, large_bytes, stream);
  std::string host(64, '\0');
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  std::printf("rank %d of %d on %s: sum %g, 16 KiB in %.1f us, 8 MiB at %.2f GB/s\n",
              comm.rank(),
              comm.world_size(),
              host.c_str(),
              static_cast<double>(value),
              small * 1e6,
              static_cast<double>(large_bytes) / large / 1e9);
  comm.close(10s);
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 4;
  }
}
