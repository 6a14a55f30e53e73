// SPDX-License-Identifier: AGPL-3.0-only
// Groups: collected, nested, dropped by an exception, refused, of two communicators, of one rank.
#include "support/expect_error.hpp"
#include "support/world.hpp"

#include <spark_comm/spark_comm.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using test_support::in_world;
using testing::expect_error;

void sum(communicator& comm, std::int32_t& value, cuda::stream_ref s) {
  all_reduce(comm, &value, &value, 1, data_type::int32, reduce_op::sum, s);
}

void expect_done(communicator& comm, cuda::stream_ref s) {
  ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
}

TEST(group, launches_nothing_before_the_outer_commit) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    std::int32_t a = 1;
    std::int32_t b = 10;
    {
      group_scope outer{comm};
      {
        group_scope inner{comm};
        sum(comm, a, s);
        inner.commit();
      }
      sum(comm, b, s);
      EXPECT_EQ(comm.sequence(), 0U);
      EXPECT_EQ(s.poll(), progress::done);
      outer.commit();
    }
    expect_done(comm, s);
    EXPECT_EQ(a, 2);
    EXPECT_EQ(b, 20);
  });
}

TEST(group, left_by_an_exception_launches_nothing_and_the_next_works) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    std::int32_t value = 1;
    if (comm.rank() == 0) {
      expect_error(errc::invalid_argument, "root 2", [&] {
        group_scope group{comm};
        sum(comm, value, s);
        broadcast(comm, &value, &value, 1, data_type::int32, rank_id{2}, s);
        group.commit();
      });
      EXPECT_EQ(comm.sequence(), 0U);
    }
    {
      group_scope group{comm};
      sum(comm, value, s);
      group.commit();
    }
    expect_done(comm, s);
    EXPECT_EQ(value, 2);
  });
}

TEST(group, a_swallowed_refusal_comes_back_at_the_commit) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    std::int32_t value = 1;
    {
      group_scope group{comm};
      sum(comm, value, s);
      EXPECT_THROW(all_reduce(comm, nullptr, nullptr, 1, data_type::int32, reduce_op::sum, s),
                   error);
      expect_error(errc::invalid_argument, "in is null", [&] { group.commit(); });
    }
    EXPECT_EQ(comm.sequence(), 0U);
    sum(comm, value, s);  // outside, and as if nothing had been
    expect_done(comm, s);
    EXPECT_EQ(value, 2);
  });
}

TEST(group, an_inner_scope_left_without_commit_refuses_the_whole) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    std::int32_t value = 1;
    {
      group_scope outer{comm};
      sum(comm, value, s);
      try {
        group_scope inner{comm};
        throw std::runtime_error{"inside"};
      } catch (const std::runtime_error&) {
      }
      expect_error(errc::invalid_usage, "without a commit", [&] { outer.commit(); });
    }
    EXPECT_EQ(comm.sequence(), 0U);
    sum(comm, value, s);
    expect_done(comm, s);
    EXPECT_EQ(value, 2);
  });
}

TEST(group, belongs_to_its_thread) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    std::int32_t grouped = 1;
    std::int32_t alone = 5;
    {
      group_scope group{comm};
      sum(comm, grouped, s);
      std::thread other{[&] {
        expect_error(errc::invalid_usage, "thread that opened it", [&] { group.commit(); });
        const cuda::stream own = comm.device().create_stream();
        sum(comm, alone, own);  // runs at once: the group is not this thread's
        expect_done(comm, own);
      }};
      other.join();
      EXPECT_EQ(alone, 10);
      group.commit();
    }
    expect_done(comm, s);
    EXPECT_EQ(grouped, 2);
  });
}

TEST(group, commits_once) {
  in_world(1, [](communicator& comm) {
    group_scope group{comm};
    group.commit();
    expect_error(errc::invalid_usage, "committed already", [&] { group.commit(); });
  });
}

TEST(group, a_barrier_cannot_be_inside) {
  in_world(2, [](communicator& comm) {
    group_scope group{comm};
    expect_error(errc::invalid_usage, "cannot be in a group", [&] { barrier(comm, 1s); });
  });
}

TEST(group, holds_operations_of_two_communicators) {
  const test_support::meeting_place first;
  const test_support::meeting_place second;
  test_support::expect_all_succeeded(test_support::run_rank_processes(2, [&](int rank) {
    const runtime loaded = test_support::host_runtime();
    communicator a = test_support::join_at(first, loaded, rank, 2);
    communicator b = test_support::join_at(second, loaded, rank, 2);
    const cuda::stream s = a.device().create_stream();
    const cuda::stream t = b.device().create_stream();
    std::int32_t one = 1;
    std::int32_t two = 2;
    {
      group_scope group{a};
      sum(a, one, s);
      sum(b, two, t);
      group.commit();
    }
    expect_done(a, s);
    expect_done(b, t);
    EXPECT_EQ(one, 2);
    EXPECT_EQ(two, 4);
    a.close(10s);
    sum(b, two, t);  // the other lives on
    expect_done(b, t);
    EXPECT_EQ(two, 8);
    b.close(10s);
  }));
}

TEST(group, messages_to_oneself_pair_up) {
  for (const int world : {1, 2}) {
    in_world(world, [](communicator& comm) {
      const cuda::stream s = comm.device().create_stream();
      const rank_id self{comm.rank()};
      std::int32_t from = 7;
      std::int32_t to = 0;
      {
        group_scope group{comm};
        recv(comm, &to, 1, data_type::int32, self, s);
        send(comm, &from, 1, data_type::int32, self, s);
        group.commit();
      }
      expect_done(comm, s);
      EXPECT_EQ(to, 7);
      expect_error(errc::invalid_usage, "messages to this rank itself", [&] {
        group_scope group{comm};
        send(comm, &from, 1, data_type::int32, self, s);
        group.commit();
      });
      expect_error(errc::invalid_argument, "sends itself 4 bytes and expects 1", [&] {
        group_scope group{comm};
        send(comm, &from, 1, data_type::int32, self, s);
        recv(comm, &to, 1, data_type::uint8, self, s);
        group.commit();
      });
      EXPECT_EQ(comm.state(), communicator_state::ready);
    });
  }
}

TEST(group, in_a_world_of_one_nothing_is_copied_before_the_commit) {
  in_world(1, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    std::int32_t in = 3;
    std::int32_t out = 0;
    const auto copy_in_group = [&](bool is_committed) {
      group_scope group{comm};
      all_reduce(comm, &in, &out, 1, data_type::int32, reduce_op::sum, s);
      if (is_committed) {
        group.commit();
      }
    };
    copy_in_group(false);
    expect_done(comm, s);
    EXPECT_EQ(out, 0);
    copy_in_group(true);
    expect_done(comm, s);
    EXPECT_EQ(out, 3);
  });
}

// Two threads at once: the later one is told; whatever was accepted is right.
TEST(group, a_second_thread_on_one_communicator_is_told) {
  in_world(1, [](communicator& comm) {
    std::atomic<int> accepted{0};
    std::atomic<int> refused{0};
    const auto issue = [&] {
      const cuda::stream s = comm.device().create_stream();
      std::int32_t in = 1;
      std::int32_t out = 0;
      for (int round = 0; round < 500; ++round) {
        try {
          all_reduce(comm, &in, &out, 1, data_type::int32, reduce_op::sum, s);
          ++accepted;
        } catch (const error& told) {
          EXPECT_EQ(told.kind(), errc::invalid_usage) << told.what();
          ++refused;
        }
        EXPECT_EQ(comm.state(), communicator_state::ready);
      }
      expect_done(comm, s);
    };
    std::thread other{issue};
    issue();
    other.join();
    EXPECT_EQ(accepted + refused, 1000);
    EXPECT_GT(accepted, 0);
  });
}

}  // namespace
}  // namespace spark_comm
