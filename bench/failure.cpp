// SPDX-License-Identifier: AGPL-3.0-only
// How a lost rank looks to the others: ranks all-reduce in a loop, one of them is killed or stopped
// at a random moment, and the survivors say what they were told, how long after, and how long their
// abort took. Prints one JSON object a round.
//
//     failure kill|stop ranks rounds [operation deadline in ms] [seed]
//
// All ranks share one GPU where there is one: each has an NCCL_HOSTID of its own.
#include <spark_comm/spark_comm.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr int most_ranks = 8;

struct told {
  std::atomic<bool> is_set{false};
  std::atomic<std::int64_t> at_ns{0};
  double abort_ms = 0;
  char code[32] = {};
  char text[512] = {};
};

// What parent and ranks share.
struct board {
  char address[128] = {};
  std::atomic<bool> has_address{false};
  std::atomic<int> running{0};
  told ranks[most_ranks];
};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock_type::now().time_since_epoch())
      .count();
}

void work_until_failure(spark_comm::communicator& comm, board& shared, std::size_t bytes) {
  const auto stream = comm.device().create_stream();
  const auto x = spark_comm::cuda::device_buffer::allocate(comm.device(), bytes);
  fill_async(comm.device(), x.address(), 0, bytes, stream);
  for (int step = 0;; ++step) {
    all_reduce(comm, x.as<float>(), spark_comm::reduce_op::sum, stream);
    if (comm.wait(stream, 60s) == spark_comm::wait_result::timed_out) {
      throw spark_comm::error{spark_comm::errc::internal, "waited 60 s without a verdict"};
    }
    if (step == 10) {
      ++shared.running;
    }
  }
}

int be_rank(int rank, int ranks, std::chrono::milliseconds deadline, board& shared) {
  ::setenv("NCCL_HOSTID", ("failure-" + std::to_string(rank)).c_str(), 1);
  if (rank != 0) {
    while (!shared.has_address) {
      std::this_thread::sleep_for(1ms);
    }
  }
  spark_comm::join_options options{.name = "failure",
                                   .operation_deadline = deadline,
                                   .sharing = spark_comm::device_sharing::allowed};
  options.on_listening = [&](const std::string& address) {
    std::strncpy(shared.address, address.c_str(), sizeof shared.address - 1);
    shared.has_address = true;
  };
  const auto runtime = spark_comm::runtime::load(spark_comm::runtime_kind::automatic);
  auto comm = spark_comm::communicator::join(
      runtime,
      {.address = rank == 0 ? "127.0.0.1:0" : shared.address, .rank = rank, .world_size = ranks},
      options);
  told& mine = shared.ranks[rank];
  try {
    work_until_failure(comm, shared, std::size_t{1} << 20);
  } catch (const spark_comm::error& failure) {
    mine.at_ns = now_ns();
    std::strncpy(mine.code, std::string{name_of(failure.kind())}.c_str(), sizeof mine.code - 1);
    std::strncpy(mine.text, failure.what(), sizeof mine.text - 1);
  }
  const auto begin = clock_type::now();
  comm.abort();
  mine.abort_ms = std::chrono::duration<double, std::milli>(clock_type::now() - begin).count();
  mine.is_set = true;
  return 0;
}

bool wait_for(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const auto end = clock_type::now() + limit;
  while (!condition()) {
    if (clock_type::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

std::string escaped(const char* text) {
  std::string result;
  for (; *text != '\0'; ++text) {
    if (*text == '"' || *text == '\\') {
      result += '\\';
    }
    result += *text;
  }
  return result;
}

// One round. Returns whether every survivor was told, naming the victim.
bool play(int signal, int ranks, std::chrono::milliseconds deadline, std::mt19937& random) {
  void* memory =
      ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    return false;
  }
  auto& shared = *new (memory) board;
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        ::_exit(be_rank(rank, ranks, deadline, shared));
      } catch (const std::exception& failure) {
        std::fprintf(stderr, "rank %d: %s\n", rank, failure.what());
        ::_exit(4);
      }
    }
    children.push_back(child);
  }
  const int victim = std::uniform_int_distribution{0, ranks - 1}(random);
  bool is_good = wait_for([&] { return shared.running == ranks; }, 60s);
  std::this_thread::sleep_for(
      std::chrono::microseconds{std::uniform_int_distribution{0, 50000}(random)});
  const std::int64_t death = now_ns();
  ::kill(children[static_cast<std::size_t>(victim)], signal);
  std::printf("{\"signal\": \"%s\", \"ranks\": %d, \"victim\": %d, \"survivors\": [",
              signal == SIGKILL ? "kill" : "stop",
              ranks,
              victim);
  bool is_first = true;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == victim) {
      continue;
    }
    const told& of = shared.ranks[rank];
    const bool was_told = wait_for([&] { return of.is_set.load(); }, deadline + 10s);
    const bool names =
        std::string_view{of.text}.find("rank " + std::to_string(victim)) != std::string_view::npos;
    is_good = is_good && was_told && names;
    std::printf(
        "%s{\"rank\": %d, \"told\": %s, \"after_ms\": %.3f, \"code\": \"%s\", "
        "\"names_victim\": %s, \"abort_ms\": %.3f, \"text\": \"%s\"}",
        is_first ? "" : ", ",
        rank,
        was_told ? "true" : "false",
        static_cast<double>(of.at_ns - death) / 1e6,
        of.code,
        names ? "true" : "false",
        of.abort_ms,
        escaped(of.text).c_str());
    is_first = false;
  }
  std::printf("], \"good\": %s}\n", is_good ? "true" : "false");
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  ::munmap(memory, sizeof(board));
  return is_good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: failure kill|stop ranks rounds [deadline in ms] [seed]\n");
    return 2;
  }
  const int signal = std::string_view{argv[1]} == "kill" ? SIGKILL : SIGSTOP;
  const int ranks = std::atoi(argv[2]);
  const int rounds = std::atoi(argv[3]);
  const std::chrono::milliseconds deadline{argc > 4 ? std::atoi(argv[4]) : 2000};
  std::mt19937 random{argc > 5 ? static_cast<unsigned>(std::atoi(argv[5])) : 1U};
  if (ranks < 2 || ranks > most_ranks || rounds < 1) {
    std::fprintf(stderr, "failure: 2 to %d ranks, at least one round\n", most_ranks);
    return 2;
  }
  int good = 0;
  for (int round = 0; round < rounds; ++round) {
    good += play(signal, ranks, deadline, random) ? 1 : 0;
  }
  std::fprintf(stderr, "%d of %d rounds good\n", good, rounds);
  return good == rounds ? 0 : 1;
}
