// SPDX-License-Identifier: AGPL-3.0-only
// A small job of two ranks that does a bit of everything, run under a fault script; and what has to
// be true afterwards, whatever failed.
#pragma once

#include "support/ranks.hpp"

#include <spark_comm/spark_comm.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iterator>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

extern "C" {
int spark_comm_host_live_handles(int kind);
int spark_comm_host_set_faults(const char* text);
int spark_comm_host_faults_applied();
int spark_comm_host_stale_calls();
}

namespace spark_comm::fault_test {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

inline constexpr int ranks = 2;
/// More than every deadline of the job together.
inline constexpr auto rank_limit = 15s;
inline constexpr int handle_kinds = 9;

/// A port of the loopback that was free a moment ago.
inline int find_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(name);
  if (::bind(probe, reinterpret_cast<const sockaddr*>(&name), bytes) != 0 ||
      ::getsockname(probe, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) {
    ADD_FAILURE() << "no free port";
  }
  static_cast<void>(::close(probe));
  return ntohs(name.sin_port);
}

inline std::size_t count_entries(const char* folder) {
  const std::filesystem::directory_iterator entries{folder};
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

/// What each descriptor of this process is. Left out are two files that the host runtime keeps as
/// long as the process lives: its device memory, and that of a unique id which nobody could use.
inline std::vector<std::string> list_descriptors() {
  std::vector<std::string> open;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!target.starts_with("/memfd:spark_comm")) {
      open.push_back(std::move(target));
    }
  }
  std::ranges::sort(open);
  return open;
}

/// Descriptors and threads of this process.
struct belongings {
  std::vector<std::string> descriptors = list_descriptors();
  std::size_t threads = count_entries("/proc/self/task");
};

/// What may be left behind.
enum class leftovers : std::uint8_t {
  none,
  handles,      ///< A driver in which everything fails gives nothing back either, streams included.
  stuck_calls,  ///< A native call that never returns keeps its thread and what it uses.
};

/// What a run may leave behind, and how long its ranks wait for each other.
struct conditions {
  leftovers allowed = leftovers::none;
  duration join_deadline = 4s;
};

inline join_options short_deadlines(duration join_deadline) {
  join_options options;
  options.deadline = join_deadline;
  options.operation_deadline = 500ms;
  options.abort_deadline = 300ms;
  options.sharing = device_sharing::allowed;
  return options;
}

inline void wait_for(communicator& comm, const cuda::stream& on) {
  if (comm.wait(on, 1s) == wait_result::timed_out) {
    throw error{errc::timed_out, "the stream of the job has not ended"};
  }
}

inline void exchange(communicator& comm,
                     device_span<int> mine,
                     device_span<int> got,
                     cuda::stream_ref on) {
  const rank_id peer{1 - comm.rank()};
  group_scope group{comm};
  send(comm, mine, peer, on);
  recv(comm, got, peer, on);
  group.commit();
}

/// Joins, does a few operations, checks their results, closes.
inline void run_job(const runtime& loaded, const world& place, duration join_deadline) {
  communicator comm = communicator::join(loaded, place, short_deadlines(join_deadline));
  const cuda::stream on = comm.device().create_stream();
  constexpr std::size_t count = 8;
  const auto first = cuda::device_buffer::allocate(comm.device(), count * sizeof(int));
  const auto second = cuda::device_buffer::allocate(comm.device(), count * sizeof(int));
  const device_span<int> mine = first.as<int>();
  const device_span<int> got = second.as<int>();

  std::vector<int> values(count, comm.rank() + 1);
  copy_async(comm.device(), first.address(), values.data(), count * sizeof(int), on);
  all_reduce(comm, mine, reduce_op::sum, on);  // 3
  broadcast(comm, mine, rank_id{1}, on);
  exchange(comm, mine, got, on);
  barrier(comm, 500ms);
  all_reduce(comm, got, reduce_op::max, on);
  wait_for(comm, on);  // before the copy, which would wait itself, and without a limit
  copy_async(comm.device(), values.data(), second.address(), count * sizeof(int), on);
  wait_for(comm, on);
  EXPECT_EQ(values, std::vector<int>(count, 3));
  comm.close(1s);
}

inline bool eventually(const auto& holds) {
  for (int tries = 0; tries < 400 && !holds(); ++tries) {
    std::this_thread::sleep_for(5ms);
  }
  return holds();
}

inline void expect_clean(const belongings& before, leftovers allowed) {
  EXPECT_EQ(spark_comm_host_stale_calls(), 0) << "a native call after the communicator's end";
  if (allowed != leftovers::none) {
    return;
  }
  for (int kind = 0; kind < handle_kinds; ++kind) {
    EXPECT_TRUE(eventually([&] { return spark_comm_host_live_handles(kind) == 0; }))
        << spark_comm_host_live_handles(kind) << " alive of kind " << kind;
  }
  // Streams of the host runtime keep a worker for a while; helpers end when they have seen the end.
  EXPECT_TRUE(eventually([&] { return belongings{}.threads <= before.threads; }))
      << belongings{}.threads << " threads, " << before.threads << " before";
  EXPECT_EQ(belongings{}.descriptors, before.descriptors);
}

/// One rank's whole life under the script. An error of ours with a sensible code is the right end
/// of a job in which something failed; so is success, when the failure was of no consequence.
inline void be_faulty_rank(const std::string& script,
                           const world& place,
                           const conditions& under,
                           int& applied) {
  ASSERT_EQ(spark_comm_host_set_faults(script.c_str()), 0);
  const belongings before;
  try {
    const runtime loaded = runtime::load(runtime_kind::host,
                                         {.nccl_library = {},
                                          .host_library = SPARK_COMM_TEST_HOST_RUNTIME,
                                          .log = diagnostics{[](const diagnostic&) {}}});
    run_job(loaded, place, under.join_deadline);
  } catch (const error& failure) {
    EXPECT_NE(failure.kind(), errc::invalid_argument) << failure.what();
  }
  applied = spark_comm_host_faults_applied();
  ASSERT_EQ(spark_comm_host_set_faults(""), 0);
  expect_clean(before, under.allowed);
}

using applied_counts = std::array<int, ranks>;

/// Runs the job under the script; how often each rank's rules were applied.
inline applied_counts run_faulty_job(const std::string& script, const conditions& under = {}) {
  const std::string address = "127.0.0.1:" + std::to_string(find_port());
  const test_support::shared_value<applied_counts> applied;
  const auto outcomes = test_support::run_rank_processes(
      ranks,
      [&](int rank) {
        ASSERT_EQ(setenv("SPARK_COMM_RANK", std::to_string(rank).c_str(), 1), 0);
        be_faulty_rank(script,
                       {.address = address, .rank = rank, .world_size = ranks},
                       under,
                       applied->at(static_cast<std::size_t>(rank)));
      },
      rank_limit);
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(outcomes[static_cast<std::size_t>(rank)], "")
        << "rank " << rank << " under: " << script;
  }
  return *applied;
}

}  // namespace spark_comm::fault_test
