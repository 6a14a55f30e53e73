// SPDX-License-Identifier: AGPL-3.0-only
// What it shows: a serving loop loses a rank, gets a new process in its place, and goes on: the
//                other keeps its process, its memory and what it has registered.
// Needs:         nothing; runs on the host runtime where there is no GPU.
// Run:           ./07_losing_a_rank
// Expected:      rank 0: peer_lost after 50 steps
//                rank 0: back in generation 2 at step 50
//                rank 0: 100 steps, all right
//                rank 1: 100 steps, all right
// Can go wrong:  a new process that does not say it is a replacement, as rank 0, waits for others
//                where they do not look for it.
// Next:          ../docs/recovery.md
#include <spark_comm/spark_comm.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace std::chrono_literals;
using spark_comm::rendezvous::entry;

constexpr int all_steps = 100;
constexpr int steps_before_loss = 50;

// What a rank loads once and keeps. Here it is one number a rank.
class model {
 public:
  explicit model(spark_comm::communicator& comm)
      : comm_(&comm),
        stream_(comm.device().create_stream()),
        memory_(spark_comm::cuda::device_buffer::allocate(comm.device(), sizeof(std::int32_t))),
        registered_(comm.register_buffer(memory_)) {}

  std::int32_t reduce(std::int32_t mine, spark_comm::reduce_op op) {
    copy_async(comm_->device(), memory_.address(), &mine, sizeof mine, stream_);
    all_reduce(*comm_, memory_.as<std::int32_t>(), op, stream_);
    copy_async(comm_->device(), &mine, memory_.address(), sizeof mine, stream_);
    if (comm_->wait(stream_, 10s) == spark_comm::wait_result::timed_out) {
      throw spark_comm::error{spark_comm::errc::timed_out, "no result after 10 s"};
    }
    return mine;
  }

 private:
  spark_comm::communicator* comm_;
  spark_comm::cuda::stream stream_;
  spark_comm::cuda::device_buffer memory_;
  spark_comm::registration registered_;
};

// [recover]
// Mends the communicator, and gives the step from which to go on: that of the rank that knows most.
// A new one knows nothing. Memory and registrations are as they were.
int recover(spark_comm::communicator& comm,
            model& loaded,
            const spark_comm::error& failure,
            int done) {
  if (failure.recovery() != spark_comm::recovery::reconnect) {
    throw spark_comm::error{failure};
  }
  comm.reconnect(20s);
  return loaded.reduce(done, spark_comm::reduce_op::max);
}

// [/recover]

int be_rank(int rank, const std::string& address, entry way_in) {
  // On one GPU NCCL takes ranks of one host for a mistake.
  ::setenv("NCCL_HOSTID", ("example-" + std::to_string(::getpid())).c_str(), 1);
  const auto runtime = spark_comm::runtime::load(spark_comm::runtime_kind::automatic);
  auto comm = spark_comm::communicator::join(
      runtime,
      {.address = address, .rank = rank, .world_size = 2},
      {.sharing = spark_comm::device_sharing::allowed, .way_in = way_in});
  model loaded{comm};
  int done = loaded.reduce(0, spark_comm::reduce_op::max);
  while (done < all_steps) {
    try {
      if (rank == 1 && way_in == entry::founding && done == steps_before_loss) {
        std::raise(SIGKILL);  // the loss
      }
      if (loaded.reduce(rank + done, spark_comm::reduce_op::sum) != 1 + 2 * done) {
        std::fprintf(stderr, "rank %d: wrong result at step %d\n", rank, done);
        return 1;
      }
      ++done;
    } catch (const spark_comm::error& failure) {
      std::printf("rank %d: %s after %d steps\n", rank, name_of(failure.kind()).data(), done);
      done = recover(comm, loaded, failure, done);
      std::printf("rank %d: back in generation %d at step %d\n",
                  rank,
                  static_cast<int>(comm.generation()),
                  done);
    }
  }
  std::printf("rank %d: %d steps, all right\n", rank, done);
  comm.close(5s);
  return 0;
}

// The part of whatever starts and watches processes: a job manager, systemd, Kubernetes.
pid_t start(int rank, const std::string& address, entry way_in) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child != 0) {
    return child;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // ranks print as things happen
  int status = 4;
  try {
    status = be_rank(rank, address, way_in);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
  }
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace

int main() {
  std::string folder = "/tmp/spark_comm-example-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    std::perror("mkdtemp");
    return 4;
  }
  const std::string address = "file://" + folder + "/meeting";
  std::vector<pid_t> ranks = {start(0, address, entry::founding),
                              start(1, address, entry::founding)};
  int result = 0;
  for (std::size_t running = ranks.size(); running > 0;) {
    int status = 0;
    const auto lost = std::ranges::find(ranks, ::waitpid(-1, &status, 0));
    if (WIFSIGNALED(status) && lost != ranks.end()) {
      *lost = start(static_cast<int>(lost - ranks.begin()), address, entry::replacing);
      continue;
    }
    result = std::max(result, WEXITSTATUS(status));
    --running;
  }
  ::rmdir(folder.c_str());
  return result;
}
