// SPDX-License-Identifier: AGPL-3.0-only
// Ranks that issue different operations: both are told, what each did, whether the native library
// noticed anything or not.
#include "support/world.hpp"

#include <spark_comm/spark_comm.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using test_support::in_world;

using buffer = std::array<std::int64_t, 64>;
using program = std::function<void(communicator&, buffer&, cuda::stream_ref)>;

void reduce_some(communicator& comm,
                 buffer& memory,
                 cuda::stream_ref s,
                 std::size_t count,
                 data_type dtype = data_type::int32,
                 reduce_op op = reduce_op::sum) {
  all_reduce(comm, memory.data(), memory.data(), count, dtype, op, s);
}

struct difference {
  std::string name;
  program first;   // what rank 0 does
  program second;  // and rank 1
  std::vector<std::string> words;
};

std::vector<difference> differences() {
  using c = communicator;
  using s = cuda::stream_ref;
  const program four = [](c& comm, buffer& m, s on) { reduce_some(comm, m, on, 4); };
  const program eight = [](c& comm, buffer& m, s on) { reduce_some(comm, m, on, 8); };
  const auto cast = [](int root) {
    return [root](c& comm, buffer& m, s on) {
      broadcast(comm, m.data(), m.data(), 4, data_type::int32, rank_id{root}, on);
    };
  };
  return {
      {"count", four, eight, {"count differs", "4 x", "8 x"}},
      {"empty_on_one",
       [](c& comm, buffer& m, s on) {
         reduce_some(comm, m, on, 0);  // no operation at all
         reduce_some(comm, m, on, 6);
       },
       eight,
       {"count differs", "6 x", "8 x"}},
      {"dtype",
       four,
       [](c& comm, buffer& m, s on) { reduce_some(comm, m, on, 4, data_type::float32); },
       {"int32", "fp32"}},
      {"reduction",
       four,
       [](c& comm, buffer& m, s on) {
         reduce_some(comm, m, on, 4, data_type::int32, reduce_op::max);
       },
       {"sum", "max"}},
      {"root", cast(0), cast(1), {"root differs"}},
      {"kind", four, cast(0), {"all_reduce", "broadcast"}},
      {"order",
       [=](c& comm, buffer& m, s on) {
         four(comm, m, on);
         cast(0)(comm, m, on);
       },
       [=](c& comm, buffer& m, s on) {
         cast(0)(comm, m, on);
         four(comm, m, on);
       },
       {"all_reduce", "broadcast"}},
      {"skipped",
       [=](c& comm, buffer& m, s on) {
         four(comm, m, on);
         eight(comm, m, on);
         cast(0)(comm, m, on);
       },
       [=](c& comm, buffer& m, s on) {
         four(comm, m, on);
         cast(0)(comm, m, on);
       },
       {"all_reduce", "broadcast"}},
      {"grouping",
       four,
       [=](c& comm, buffer& m, s on) {
         group_scope group{comm};
         four(comm, m, on);
         group.commit();
       },
       {"grouping differs"}},
  };
}

// Issues the rank's program and waits for the verdict.
std::optional<error> verdict_on(communicator& comm, const program& mine, buffer& memory) {
  const cuda::stream s = comm.device().create_stream();
  try {
    mine(comm, memory, s);
    static_cast<void>(comm.wait(s, 3s));
    const auto end = clock::now() + 3s;
    while (clock::now() < end) {  // done natively, perhaps; not the last word
      static_cast<void>(comm.wait(s, 3s));
      std::this_thread::sleep_for(1ms);
    }
  } catch (const error& failure) {
    return failure;
  }
  return std::nullopt;
}

void expect_mismatch(communicator& comm,
                     const std::optional<error>& failure,
                     const difference& each) {
  ASSERT_TRUE(failure) << each.name << ": nobody noticed";
  EXPECT_EQ(failure->kind(), errc::mismatch) << each.name << ": " << failure->what();
  EXPECT_EQ(failure->context().peers, std::vector<int>{1 - comm.rank()}) << failure->what();
  for (const std::string& word : each.words) {
    EXPECT_NE(std::string{failure->what()}.find(word), std::string::npos)
        << each.name << ": '" << word << "' is not in " << failure->what();
  }
  EXPECT_EQ(comm.state(), communicator_state::broken);
}

class mismatch : public ::testing::TestWithParam<difference> {};

TEST_P(mismatch, is_told_on_both_ranks_within_a_heartbeat_or_so) {
  in_world(2, [](communicator& comm) {
    static buffer memory{};  // outlives the communicator, which ends broken
    barrier(comm, 10s);
    const auto begin = clock::now();
    const auto failure =
        verdict_on(comm, comm.rank() == 0 ? GetParam().first : GetParam().second, memory);
    EXPECT_LT(clock::now() - begin, 1500ms);  // heartbeats are 100 ms apart; the machine is busy
    expect_mismatch(comm, failure, GetParam());
  });
}

TEST_P(mismatch, is_told_before_the_launch_in_the_strict_check) {
  const auto strict = [](int, join_options& options) {
    options.supervise.check = mismatch_check::strict;
  };
  in_world(
      2,
      [](communicator& comm) {
        static buffer memory{};
        memory.fill(3);
        const auto failure =
            verdict_on(comm, comm.rank() == 0 ? GetParam().first : GetParam().second, memory);
        expect_mismatch(comm, failure, GetParam());
        if (GetParam().name != "skipped") {  // whose first operation is right
          buffer untouched{};
          untouched.fill(3);
          EXPECT_EQ(memory, untouched) << "it was launched";
        }
      },
      strict);
}

INSTANTIATE_TEST_SUITE_P(of, mismatch, ::testing::ValuesIn(differences()), [](const auto& each) {
  return each.param.name;
});

TEST(strict_check, lets_ranks_that_agree_work_in_groups_too) {
  const auto strict = [](int, join_options& options) {
    options.supervise.check = mismatch_check::strict;
  };
  in_world(
      2,
      [](communicator& comm) {
        const cuda::stream s = comm.device().create_stream();
        buffer memory{};
        const rank_id peer{1 - comm.rank()};
        for (int round = 0; round < 3; ++round) {
          reduce_some(comm, memory, s, 4);
          group_scope group{comm};
          reduce_some(comm, memory, s, 2);
          send(comm, memory.data(), 4, data_type::int32, peer, s);
          recv(comm, memory.data() + 32, 4, data_type::int32, peer, s);
          group.commit();
        }
        ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
        barrier(comm, 10s);
      },
      strict);
}

TEST(message_sizes, that_differ_are_a_mismatch) {
  in_world(2, [](communicator& comm) {
    static buffer memory{};
    const auto failure = verdict_on(
        comm,
        [](communicator& c, buffer& m, cuda::stream_ref s) {
          if (c.rank() == 0) {
            send(c, m.data(), 4, data_type::int32, rank_id{1}, s);
          } else {
            recv(c, m.data(), 5, data_type::int32, rank_id{0}, s);
          }
        },
        memory);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->kind(), errc::mismatch) << failure->what();
  });
}

// The idle rank that leaves its part out and stays silent.
TEST(silent_rank, is_named_with_the_step_that_it_did_not_issue) {
  const auto change = [](int, join_options& options) { options.operation_deadline = 500ms; };
  in_world(
      2,
      [](communicator& comm) {
        static buffer memory{};
        const cuda::stream s = comm.device().create_stream();
        for (int step = 1; step <= 2; ++step) {
          reduce_some(comm, memory, s, 4);
        }
        ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
        if (comm.rank() == 1) {
          const auto end = clock::now() + 5s;
          while (comm.state() == communicator_state::ready && clock::now() < end) {
            std::this_thread::sleep_for(1ms);
          }
          EXPECT_EQ(comm.last_error()->kind(), errc::peer_lost) << comm.last_error()->what();
          return;
        }
        const auto failure = verdict_on(
            comm,
            [](communicator& c, buffer& m, cuda::stream_ref on) { reduce_some(c, m, on, 4); },
            memory);
        ASSERT_TRUE(failure);
        EXPECT_EQ(failure->kind(), errc::timed_out) << failure->what();
        EXPECT_EQ(failure->context().peers, std::vector<int>{1}) << failure->what();
        EXPECT_EQ(failure->context().sequence, 3U);
        EXPECT_EQ(failure->context().deadline, 500ms);
      },
      change);
}

}  // namespace
}  // namespace spark_comm
