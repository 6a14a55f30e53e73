// SPDX-License-Identifier: AGPL-3.0-only
// After a reconnect every path is there again, with memory mapped anew, and gives the same bits.
#include "path_world.hpp"

#include <spark_comm/collectives/all_reduce.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/paths/path_of.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <thread>
#include <unistd.h>

namespace spark_comm::test_support {
namespace {

using namespace std::chrono_literals;
using enum path_kind;

constexpr std::size_t count = 65;
constexpr path_query asked{.bytes = count * sizeof(bfloat16),
                           .staging_bytes = count * sizeof(bfloat16)};

class path_reconnect_on : public testing::TestWithParam<path_kind> {
 protected:
  [[nodiscard]] static path_options paths() {
    path_options options;
    options.table = table_of(GetParam());
    options.max_bytes = 4096;
    return options;
  }

  // One all-reduce; its bits are those of the sum in rank order.
  static void expect_right(communicator& comm,
                           const device_elements<bfloat16>& x,
                           const cuda::stream& s,
                           int round) {
    const int size = comm.world_size();
    x.write(message<bfloat16>(comm.rank(), count, round), s);
    all_reduce(comm, x.span(), reduce_op::sum, s);
    ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
    EXPECT_EQ(x.read(s), sum_of_ranks<bfloat16>(size, count, round)) << "round " << round;
  }

  static void wait_for_failure(const communicator& comm) {
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (comm.state() == communicator_state::ready && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(comm.state(), communicator_state::broken);
  }
};

INSTANTIATE_TEST_SUITE_P(paths,
                         path_reconnect_on,
                         testing::Values(exchange, one_shot, two_shot, low_latency),
                         [](const auto& each) { return std::string{name_of(each.param)}; });

TEST_P(path_reconnect_on, gives_the_same_bits_in_every_generation) {
  constexpr int generations = 4;
  const meeting_place place;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    communicator comm = join_paths(place, rank, 2, paths());
    const cuda::stream s = comm.device().create_stream();
    const device_elements<bfloat16> x{comm, count};
    for (int generation = 1; generation <= generations; ++generation) {
      EXPECT_EQ(path_of(comm, asked), GetParam());
      expect_right(comm, x, s, 2 * generation);
      expect_right(comm, x, s, 2 * generation + 1);
      place.line_up(2 * (generation + 1));
      if (generation == generations) {
        break;
      }
      if (comm.rank() == generation % 2) {
        comm.abort();
      } else {
        wait_for_failure(comm);
      }
      comm.reconnect(10s);
    }
    comm.close(10s);
  }));
}

TEST_P(path_reconnect_on, gives_the_bits_of_those_who_are_left) {
  constexpr int victim = 0;
  const meeting_place place;
  const auto outcomes = run_rank_processes(3, [&](int rank) {
    communicator comm = join_paths(place, rank, 3, paths());
    const cuda::stream s = comm.device().create_stream();
    const device_elements<bfloat16> x{comm, count};
    expect_right(comm, x, s, 0);
    place.line_up(6);
    if (rank == victim) {
      static_cast<void>(::kill(::getpid(), SIGKILL));
    }
    wait_for_failure(comm);
    comm.reconnect({.deadline = 10s, .who = rendezvous::membership::survivors});
    expect_right(comm, x, s, 1);
    EXPECT_EQ(path_of(comm, asked), GetParam());
    comm.close(10s);
  });
  EXPECT_EQ(outcomes[0], "ended by signal 9\n");
  EXPECT_EQ(outcomes[1], "");
  EXPECT_EQ(outcomes[2], "");
}

}  // namespace
}  // namespace spark_comm::test_support
