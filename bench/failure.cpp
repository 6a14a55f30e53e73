// SPDX-License-Identifier: AGPL-3.0-only
// How a lost rank looks to the others: ranks all-reduce in a loop, one of them is killed or stopped
// at a random moment, and the survivors say what they were told, how long after, and how long their
// abort took; or how long until they work again, with a process that stood by in the lost rank's
// place. Prints one JSON object a round.
//
//     failure kill|stop|reconnect ranks rounds [operation deadline in ms] [seed]
//
// All ranks share one GPU where there is one: each has an NCCL_HOSTID of its own.
#include <spark_comm/spark_comm.hpp>

#include <algorithm>
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
  // Of a reconnect:
  std::atomic<int> standing_by{0};
  std::atomic<int> victim{-1};
  std::atomic<int> back{0};  // ranks that have had a right result since
  std::atomic<std::int64_t> ready_ns[most_ranks] = {};
  std::atomic<std::int64_t> right_ns[most_ranks] = {};
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

// NCCL takes ranks of one host identity on one GPU for a mistake.
void set_host_identity(int process) {
  ::setenv("NCCL_HOSTID", ("failure-" + std::to_string(process)).c_str(), 1);
}

spark_comm::join_options options_of_all(std::chrono::milliseconds deadline) {
  return {.name = "failure",
          .operation_deadline = deadline,
          .sharing = spark_comm::device_sharing::allowed};
}

// The memory, and a registration of it, that a rank keeps while others come and go.
class served_memory {
 public:
  explicit served_memory(spark_comm::communicator& comm)
      : comm_(&comm),
        stream_(comm.device().create_stream()),
        memory_(spark_comm::cuda::device_buffer::allocate(comm.device(), bytes)),
        registered_(comm.register_buffer(memory_)) {}

  // Whether a sum of ones over the ranks came out right.
  bool is_right(int ranks) {
    std::vector<float> host(bytes / sizeof(float), 1.0F);
    copy_async(comm_->device(), memory_.address(), host.data(), bytes, stream_);
    all_reduce(*comm_, memory_.as<float>(), spark_comm::reduce_op::sum, stream_);
    copy_async(comm_->device(), host.data(), memory_.address(), bytes, stream_);
    return comm_->wait(stream_, 20s) == spark_comm::wait_result::done &&
           std::ranges::all_of(host,
                               [ranks](float sum) { return sum == static_cast<float>(ranks); });
  }

 private:
  static constexpr std::size_t bytes = std::size_t{1} << 20;

  spark_comm::communicator* comm_;
  spark_comm::cuda::stream stream_;
  spark_comm::cuda::device_buffer memory_;
  spark_comm::registration registered_;
};

// Has the runtime loaded and the device's context made, and waits for its time.
int stand_by(int ranks, std::chrono::milliseconds deadline, board& shared) {
  set_host_identity(ranks);
  const auto runtime = spark_comm::runtime::load(spark_comm::runtime_kind::automatic);
  const auto device = spark_comm::cuda::device::open(runtime.driver(), 0);
  ++shared.standing_by;
  while (shared.victim < 0) {
    std::this_thread::sleep_for(1ms);
  }
  const int rank = shared.victim;
  auto options = options_of_all(deadline);
  options.way_in = spark_comm::rendezvous::entry::replacing;
  auto comm = spark_comm::communicator::join(
      runtime, {.address = shared.address, .rank = rank, .world_size = ranks}, options);
  shared.ready_ns[rank] = now_ns();
  served_memory memory{comm};
  if (memory.is_right(ranks)) {
    shared.right_ns[rank] = now_ns();
    ++shared.back;
  }
  comm.close(10s);
  return 0;
}

int come_back(spark_comm::communicator& comm, int ranks, board& shared) {
  served_memory memory{comm};
  try {
    while (true) {
      static_cast<void>(memory.is_right(ranks));
      ++shared.running;
    }
  } catch (const spark_comm::error& failure) {
    told& mine = shared.ranks[comm.rank()];
    mine.at_ns = now_ns();
    std::strncpy(mine.text, failure.what(), sizeof mine.text - 1);
  }
  comm.reconnect(20s);
  shared.ready_ns[comm.rank()] = now_ns();
  if (memory.is_right(ranks)) {
    shared.right_ns[comm.rank()] = now_ns();
    ++shared.back;
  }
  comm.close(10s);
  return 0;
}

enum class course { abort, reconnect };

int be_rank(int rank, int ranks, std::chrono::milliseconds deadline, course then, board& shared) {
  set_host_identity(rank);
  if (rank != 0) {
    while (!shared.has_address) {
      std::this_thread::sleep_for(1ms);
    }
  }
  auto options = options_of_all(deadline);
  options.on_listening = [&](const std::string& address) {
    std::strncpy(shared.address, address.c_str(), sizeof shared.address - 1);
    shared.has_address = true;
  };
  const auto runtime = spark_comm::runtime::load(spark_comm::runtime_kind::automatic);
  auto comm = spark_comm::communicator::join(
      runtime,
      {.address = rank == 0 ? "127.0.0.1:0" : shared.address, .rank = rank, .world_size = ranks},
      options);
  if (then == course::reconnect) {
    return come_back(comm, ranks, shared);
  }
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

pid_t start(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child != 0) {
    return child;
  }
  try {
    ::_exit(body());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    ::_exit(4);
  }
}

board* new_board() {
  void* memory =
      ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    std::exit(4);
  }
  return new (memory) board;
}

void end_all(const std::vector<pid_t>& children, board& shared) {
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  ::munmap(&shared, sizeof(board));
}

// One round. Returns whether every rank had a right result after the loss of one.
bool play_reconnect(int ranks, std::chrono::milliseconds deadline, std::mt19937& random) {
  auto& shared = *new_board();
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(
        start([&, rank] { return be_rank(rank, ranks, deadline, course::reconnect, shared); }));
  }
  children.push_back(start([&] { return stand_by(ranks, deadline, shared); }));
  const int victim = std::uniform_int_distribution{0, ranks - 1}(random);
  bool is_good =
      wait_for([&] { return shared.running >= 10 * ranks && shared.standing_by == 1; }, 60s);
  std::this_thread::sleep_for(
      std::chrono::microseconds{std::uniform_int_distribution{0, 50000}(random)});
  const std::int64_t death = now_ns();
  ::kill(children[static_cast<std::size_t>(victim)], SIGKILL);
  shared.victim = victim;
  is_good = is_good && wait_for([&] { return shared.back == ranks; }, 30s);
  const auto after_ms = [death](std::int64_t at) {
    return at == 0 ? -1.0 : static_cast<double>(at - death) / 1e6;
  };
  std::printf("{\"mode\": \"reconnect\", \"ranks\": %d, \"victim\": %d, \"of\": [", ranks, victim);
  for (int rank = 0; rank < ranks; ++rank) {
    std::printf(
        "%s{\"rank\": %d, \"is_new\": %s, \"told_ms\": %.3f, \"ready_ms\": %.3f, "
        "\"right_ms\": %.3f}",
        rank == 0 ? "" : ", ",
        rank,
        rank == victim ? "true" : "false",
        after_ms(shared.ranks[rank].at_ns),
        after_ms(shared.ready_ns[rank]),
        after_ms(shared.right_ns[rank]));
  }
  std::printf("], \"good\": %s}\n", is_good ? "true" : "false");
  end_all(children, shared);
  return is_good;
}

// One round. Returns whether every survivor was told, naming the victim.
bool play(int signal, int ranks, std::chrono::milliseconds deadline, std::mt19937& random) {
  auto& shared = *new_board();
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(
        start([&, rank] { return be_rank(rank, ranks, deadline, course::abort, shared); }));
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
  end_all(children, shared);
  return is_good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: failure kill|stop|reconnect ranks rounds [deadline in ms] [seed]\n");
    return 2;
  }
  const std::string_view mode = argv[1];
  const int signal = mode == "kill" ? SIGKILL : SIGSTOP;
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
    const bool is_good = mode == "reconnect" ? play_reconnect(ranks, deadline, random)
                                             : play(signal, ranks, deadline, random);
    good += is_good ? 1 : 0;
  }
  std::fprintf(stderr, "%d of %d rounds good\n", good, rounds);
  return good == rounds ? 0 : 1;
}
