// SPDX-License-Identifier: AGPL-3.0-only
// Joins that go wrong on the way to the meeting: BC-01, 02, 03 and 05 of docs/cases.md, each rank a
// process.
#include "process/children.hpp"
#include "support/counted_nccl.hpp"
#include "support/expect_error.hpp"
#include "support/standing_checks.hpp"
#include "support/world.hpp"
#include "unit/rendezvous/raw_peer.hpp"

#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/spark_comm.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <poll.h>
#include <set>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using rendezvous::testing::connect_to;
using rendezvous::testing::raw_listener;
using rendezvous::testing::raw_socket;
using test_support::expect_all_succeeded;
using test_support::expect_full_text;
using test_support::host_runtime;
using test_support::meeting_place;
using test_support::run_rank_processes;
using test_support::shared_value;
using test_support::test_options;
using test_support::watched_calls;
using test_support::watched_runtime;
using test_support::with_standing_checks;
using testing::error_of;
using ::testing::HasSubstr;

join_options within(duration limit, const meeting_place& place, int rank) {
  join_options options = test_options(place, rank);
  options.deadline = limit;
  return options;
}

/// The most that a case with the limit `limit` may take: T(D) of docs/cases.md.
duration latest(duration limit) {
  return limit + 1s;
}

error refusal(const runtime& loaded, const world& place, const join_options& options) {
  const error thrown = error_of([&] { return communicator::join(loaded, place, options); });
  expect_full_text(thrown, place.rank, place.world_size);
  return thrown;
}

/// Joins, works and closes.
void serve(const runtime& loaded, const world& place, const join_options& options) {
  communicator comm = communicator::join(loaded, place, options);
  barrier(comm, 10s);
  comm.close(10s);
}

/// Returns when the process, anybody's child, is gone and its sockets with it.
void wait_for_end(pid_t process) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (handle >= 0) {
    pollfd ended{.fd = handle, .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&ended, 1, 10'000), 1);
    ::close(handle);
  }
}

TEST(join_disagreement, of_world_sizes_is_told_to_the_worker_and_the_head_waits_on) {
  const meeting_place place;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    const runtime loaded = watched_runtime();
    with_standing_checks(host_runtime(), [&] {
      const auto before = clock::now();
      if (rank == 0) {
        const error thrown = refusal(loaded, place.of(0, 2), within(2s, place, 0));
        EXPECT_EQ(thrown.kind(), errc::timed_out) << thrown.what();
        EXPECT_EQ(thrown.context().peers, std::vector{1});
        EXPECT_THAT(thrown.what(), HasSubstr("refused 1 time: world size differs"));
        EXPECT_GE(clock::now() - before, 2s);
        EXPECT_LT(clock::now() - before, latest(2s));
      } else {
        world mine = place.of(1, 2);
        mine.world_size = 3;
        const auto called = clock::now();
        const error thrown = refusal(loaded, mine, within(2s, place, 1));
        EXPECT_EQ(thrown.kind(), errc::mismatch) << thrown.what();
        EXPECT_THAT(thrown.what(), HasSubstr("rank 1 was given 3, rank 0 was given 2"));
        EXPECT_LT(clock::now() - called, 1s);
      }
    });
    EXPECT_EQ(watched_calls::here().ids, 0);
    EXPECT_EQ(watched_calls::here().inits, 0);
  }));
}

TEST(join_disagreement, an_impossible_place_opens_no_socket) {
  const raw_listener listener;
  expect_all_succeeded(run_rank_processes(1, [&](int) {
    const runtime loaded = host_runtime();
    with_standing_checks(loaded, [&] {
      for (const auto& [rank, size] : {std::pair{2, 2}, {-1, 2}, {1, 0}, {1, -1}}) {
        const world place{.address = listener.where(), .rank = rank, .world_size = size};
        testing::expect_error(errc::invalid_argument, "", [&] {
          return communicator::join(loaded, place, {.supervise = {}});
        });
      }
    });
  }));
  EXPECT_FALSE(listener.has_guest());
}

TEST(join_disagreement, a_rank_claimed_twice_stays_with_the_first) {
  const meeting_place place;
  const shared_value<std::atomic<int>> refused;
  const shared_value<std::atomic<int>> ready;
  // Ranks 0 and 2, and two that both say they are rank 1.
  expect_all_succeeded(run_rank_processes(4, [&](int process) {
    const runtime loaded = watched_runtime();
    with_standing_checks(host_runtime(), [&] {
      const int rank = std::min(process, 2) - (process == 2 ? 1 : 0);
      const world mine = place.of(rank, 3);
      const auto limit = clock::now() + 10s;
      while (rank == 2 && *refused == 0 && clock::now() < limit) {
        std::this_thread::sleep_for(1ms);
      }
      const auto called = clock::now();
      try {
        communicator comm = communicator::join(loaded, mine, within(10s, place, rank));
        EXPECT_TRUE(rank != 2 || clock::now() - called < 2s);
        ++*ready;
        barrier(comm, 10s);
        comm.close(10s);
      } catch (const error& thrown) {
        ++*refused;
        EXPECT_EQ(rank, 1) << thrown.what();
        EXPECT_EQ(thrown.kind(), errc::mismatch) << thrown.what();
        EXPECT_THAT(thrown.what(), HasSubstr("rank 1 already taken"));
        expect_full_text(thrown, 1, 3);
        EXPECT_LT(clock::now() - called, 3s);
        EXPECT_EQ(watched_calls::here().inits, 0);
      }
    });
  }));
  EXPECT_EQ(*refused, 1);
  EXPECT_EQ(*ready, 3);
}

TEST(join_port, that_is_taken_is_said_at_once) {
  const raw_listener taken;
  expect_all_succeeded(run_rank_processes(1, [&](int) {
    const runtime loaded = host_runtime();
    with_standing_checks(loaded, [&] {
      const auto before = clock::now();
      const error thrown = refusal(loaded, {taken.where(), 0, 2}, {.supervise = {}});
      EXPECT_EQ(thrown.kind(), errc::system_failed) << thrown.what();
      EXPECT_EQ(thrown.native().number, EADDRINUSE);
      EXPECT_THAT(thrown.what(), HasSubstr(taken.where()));
      EXPECT_LT(clock::now() - before, 1s);
    });
  }));
}

TEST(join_port, chosen_by_a_hundred_heads_at_once_is_each_ones_own) {
  expect_all_succeeded(run_rank_processes(1, [&](int) {
    const runtime loaded = host_runtime();
    with_standing_checks(loaded, [&] {
      std::mutex mutex;
      std::set<std::string> addresses;
      std::vector<communicator> heads;
      for (int i = 0; i < 100; ++i) {
        join_options options{.name = "head", .supervise = {}};
        options.on_listening = [&](const std::string& address) {
          const std::scoped_lock lock{mutex};
          addresses.insert(address);
        };
        heads.push_back(communicator::start_join(loaded, {"127.0.0.1:0", 0, 2}, options));
      }
      const auto count = [&] {
        const std::scoped_lock lock{mutex};
        return addresses.size();
      };
      const auto limit = clock::now() + 10s;
      while (count() < heads.size() && clock::now() < limit) {
        std::this_thread::sleep_for(1ms);
      }
      EXPECT_EQ(count(), heads.size());
      for (communicator& head : heads) {
        EXPECT_EQ(head.state(), communicator_state::joining);
        head.abort();
      }
    });
  }));
}

/// A process that listens on `holder`'s port and is stopped before it accepts anybody.
class frozen_listener {
 public:
  explicit frozen_listener(const raw_listener& holder)
      : process_{[port = rendezvous::parse_address(holder.where()).port](const auto& tell) {
          const raw_socket listener;
          const int on = 1;
          ::setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
          const sockaddr_in at = rendezvous::testing::loopback(port);
          if (::bind(listener.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
              ::listen(listener.fd(), 16) != 0) {
            throw std::runtime_error{"cannot listen"};
          }
          tell("listening");
          ::raise(SIGSTOP);
        }} {
    EXPECT_EQ(process_.line(), "listening");
  }

  [[nodiscard]] pid_t pid() const { return process_.pid(); }

 private:
  testing::child process_;
};

TEST(join_port, of_a_stopped_process_is_told_apart_from_one_that_nobody_listens_on) {
  const raw_listener holder{raw_listener::mode::holds_port};
  const frozen_listener frozen{holder};
  expect_all_succeeded(run_rank_processes(1, [&](int) {
    const runtime loaded = host_runtime();
    with_standing_checks(loaded, [&] {
      join_options options{.name = "test", .deadline = 2s, .supervise = {}};
      const auto before = clock::now();
      const error thrown = refusal(loaded, {holder.where(), 1, 2}, options);
      EXPECT_EQ(thrown.kind(), errc::timed_out) << thrown.what();
      EXPECT_THAT(thrown.what(), HasSubstr("connected to " + holder.where()));
      EXPECT_THAT(thrown.what(), HasSubstr("the handshake was not answered"));
      EXPECT_GE(clock::now() - before, 2s);
      EXPECT_LT(clock::now() - before, latest(2s));

      options.deadline = 300ms;
      const error nobody = refusal(loaded, {"127.0.0.1:1", 1, 2}, options);
      EXPECT_THAT(nobody.what(), HasSubstr("could not connect to 127.0.0.1:1"));
    });
  }));
}

TEST(join_port, of_a_stopped_process_serves_the_true_head_after_it) {
  const raw_listener holder{raw_listener::mode::holds_port};
  const frozen_listener frozen{holder};
  const shared_value<std::atomic<std::int64_t>> began;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    const runtime loaded = host_runtime();
    with_standing_checks(loaded, [&] {
      join_options options{.name = "test", .deadline = 10s, .supervise = {}};
      if (rank == 0) {
        std::this_thread::sleep_for(1s);
        ::kill(frozen.pid(), SIGKILL);
        wait_for_end(frozen.pid());
        *began = clock::now().time_since_epoch().count();
      }
      communicator comm = communicator::join(loaded, {holder.where(), rank, 2}, options);
      EXPECT_LT(clock::now().time_since_epoch() - clock::duration{*began}, 2s);
      comm.close(10s);
    });
  }));
}

TEST(join_port, of_a_killed_head_is_free_for_the_next_at_once) {
  const meeting_place place;
  const shared_value<std::atomic<pid_t>> doomed;
  // The head that dies, the head after it, and two workers.
  const auto outcomes = run_rank_processes(4, [&](int process) {
    const runtime loaded = host_runtime();
    if (process == 0) {
      communicator head = communicator::start_join(loaded, place.of(0, 3), within(20s, place, 0));
      static_cast<void>(place.of(1, 3));  // it listens
      std::this_thread::sleep_for(300ms);
      *doomed = ::getpid();
      static_cast<void>(::kill(::getpid(), SIGKILL));
    }
    with_standing_checks(loaded, [&] {
      world mine = place.of(process == 3 ? 2 : 1, 3);
      if (process != 2) {  // one worker was there already, and comes again
        while (*doomed == 0) {
          std::this_thread::sleep_for(1ms);
        }
      }
      join_options options{.name = "test", .deadline = 10s, .supervise = {}};
      if (process == 1) {
        wait_for_end(*doomed);
        mine.rank = 0;
      }
      serve(loaded, mine, options);
    });
  });
  EXPECT_EQ(outcomes, (std::vector<std::string>{"ended by signal 9\n", "", "", ""}));
}

TEST(join_probe, takes_nobodys_place_and_is_told_nothing) {
  const meeting_place place;
  const shared_value<std::atomic<bool>> is_probed;
  expect_all_succeeded(run_rank_processes(3, [&](int rank) {
    if (rank == 2) {  // the prober
      const std::string where = place.of(1, 2).address;
      connect_to(where).close();
      for (int i = 0; i < 50; ++i) {
        connect_to(where).close();
        std::this_thread::sleep_for(20ms);
      }
      const raw_socket stays = connect_to(where);
      stays.stop_sending();
      *is_probed = true;
      EXPECT_TRUE(stays.read(4096).empty());
      return;
    }
    const runtime loaded = host_runtime();
    with_standing_checks(loaded, [&] {
      const world mine = place.of(rank, 2);
      while (rank == 1 && !*is_probed) {
        std::this_thread::sleep_for(1ms);
      }
      const auto called = clock::now();
      communicator comm = communicator::join(loaded, mine, within(10s, place, rank));
      EXPECT_TRUE(rank == 0 || clock::now() - called < 1s);
      barrier(comm, 10s);
      comm.close(10s);
    });
  }));
}

TEST(join_late, head_is_called_until_it_listens) {
  const raw_listener holder{raw_listener::mode::holds_port};
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    const runtime loaded = host_runtime();
    with_standing_checks(loaded, [&] {
      if (rank == 0) {
        std::this_thread::sleep_for(2s);
      }
      serve(loaded, {holder.where(), rank, 2}, {.name = "test", .deadline = 10s, .supervise = {}});
    });
  }));
}

TEST(join_late, rank_is_named_by_all_others_and_the_port_serves_the_next_join) {
  const meeting_place place;
  expect_all_succeeded(run_rank_processes(3, [&](int rank) {
    const runtime loaded = host_runtime();
    with_standing_checks(loaded, [&] {
      const std::string where = place.of(rank == 0 ? 0 : 1, 3).address;
      if (rank != 2) {
        const auto before = clock::now();
        communicator comm =
            communicator::start_join(loaded, {where, rank, 3}, within(2s, place, rank));
        EXPECT_LT(clock::now() - before, 50ms);
        const error thrown = error_of([&] {
          while (comm.poll_join() == progress::pending) {
            std::this_thread::sleep_for(1ms);
          }
          return 0;
        });
        EXPECT_EQ(thrown.kind(), errc::timed_out) << thrown.what();
        EXPECT_EQ(thrown.context().peers, std::vector{2}) << thrown.what();
        expect_full_text(thrown, rank, 3);
        EXPECT_GE(clock::now() - before, 2s);
        EXPECT_LT(clock::now() - before, latest(2s));
        EXPECT_EQ(comm.state(), communicator_state::broken);
        const auto closing = clock::now();
        try {
          comm.close(5s);
        } catch (const error&) {
          // it was broken: the state is what counts
        }
        EXPECT_LT(clock::now() - closing, 1s);
      }
      place.line_up(3);
      const std::string same = place.of(1, 3).address;
      serve(loaded, {same, rank, 3}, {.name = "test", .deadline = 10s, .supervise = {}});
    });
  }));
}

TEST(join_late, a_rank_killed_between_the_id_and_nccls_init_breaks_the_others) {
  const meeting_place place;
  const auto outcomes = run_rank_processes(3, [&](int rank) {
    const runtime loaded = watched_runtime();
    if (rank == 2) {
      watched_calls::here().on_init = [](nccl::abi::unique_id&) {
        static_cast<void>(::kill(::getpid(), SIGKILL));
      };
      static_cast<void>(communicator::join(loaded, place.of(2, 3), within(3s, place, 2)));
    }
    with_standing_checks(host_runtime(), [&] {
      const world mine = place.of(rank, 3);
      const auto before = clock::now();
      communicator comm = communicator::start_join(loaded, mine, within(3s, place, rank));
      const error thrown = error_of([&] {
        while (comm.poll_join() == progress::pending) {
          std::this_thread::sleep_for(1ms);
        }
        return 0;
      });
      EXPECT_TRUE(thrown.kind() == errc::peer_lost || thrown.kind() == errc::timed_out)
          << thrown.what();
      EXPECT_LT(clock::now() - before, latest(3s));
      EXPECT_EQ(comm.state(), communicator_state::broken);
      const auto ending = clock::now();
      comm.abort();
      EXPECT_LT(clock::now() - ending, 2s);
    });
  });
  EXPECT_EQ(outcomes, (std::vector<std::string>{"", "", "ended by signal 9\n"}));
}

}  // namespace
}  // namespace spark_comm
