// SPDX-License-Identifier: AGPL-3.0-only
#include "demo.hpp"

#include "exit_code.hpp"
#include "invocation.hpp"
#include "launch.hpp"

#include <spark_comm/spark_comm.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace spark_comm::app {
namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr std::size_t elements = 1024;
constexpr auto operation_deadline = 2s;

// How a rank ends that was told what it should be told. Not zero: the launcher then ends the other
// one, which may be stopped and would never end by itself.
constexpr int told = 5;

std::string_view story_of(mishap what) {
  switch (what) {
    case mishap::mismatch:
      return "rank 0 reduces 1024 elements, rank 1 only 1000: NCCL would give rank 1 a wrong "
             "result";
    case mishap::dead: return "rank 1 is killed: NCCL would leave rank 0 waiting";
    case mishap::frozen:
      return "rank 1 is stopped and stays connected: NCCL would leave rank 0 waiting for ever";
  }
  return "";
}

// What this rank does in place of the second all-reduce, if it is the one that fails.
void go_wrong(mishap what) {
  switch (what) {
    case mishap::mismatch: return;
    case mishap::dead:     ::raise(SIGKILL); return;
    case mishap::frozen:   ::raise(SIGSTOP); return;
  }
}

void reduce_and_wait(communicator& comm,
                     const cuda::device_buffer& x,
                     std::size_t count,
                     const cuda::stream& stream) {
  all_reduce(comm, device_span<float>{x.as<float>().address, count}, reduce_op::sum, stream);
  if (comm.wait(stream, 10s) == wait_result::timed_out) {
    throw failure(exit_code::failed, "demo: nobody said anything for 10 s");
  }
}

// The check travels with the heartbeats, so an operation can be over before it is found wrong: the
// next call that looks at the communicator throws.
void wait_for_heartbeats(communicator& comm, const cuda::stream& stream) {
  const deadline until = deadline::after(1s);
  while (!until.has_passed()) {
    static_cast<void>(comm.wait(stream, 0s));
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace

std::string_view name_of(mishap what) noexcept {
  switch (what) {
    case mishap::mismatch: return "mismatch";
    case mishap::dead:     return "dead";
    case mishap::frozen:   return "frozen";
  }
  return "unknown";
}

std::optional<mishap> parse_mishap(std::string_view name) noexcept {
  for (const mishap what : all_mishaps) {
    if (name == name_of(what)) {
      return what;
    }
  }
  return std::nullopt;
}

exit_code run_demo_rank(mishap what) {
  // When one rank dies the launcher asks the others to end: this one has something to say first.
  std::signal(SIGTERM, SIG_IGN);
  const auto loaded = runtime::load(runtime_kind::automatic);
  auto comm = communicator::join(loaded,
                                 world::from_environment(),
                                 {.name = "demo",
                                  .operation_deadline = operation_deadline,
                                  .sharing = device_sharing::allowed});
  const auto stream = comm.device().create_stream();
  const auto x = cuda::device_buffer::allocate(comm.device(), elements * sizeof(float));
  reduce_and_wait(comm, x, elements, stream);
  const bool fails = comm.rank() == 1;
  if (fails) {
    go_wrong(what);
  }
  const auto begin = clock_type::now();
  try {
    reduce_and_wait(comm, x, fails ? 1000 : elements, stream);
    wait_for_heartbeats(comm, stream);
    throw failure(exit_code::wrong, "demo: nothing was noticed");
  } catch (const error& caught) {
    const auto after =
        std::chrono::duration_cast<std::chrono::milliseconds>(clock_type::now() - begin);
    fmt::print("after {} ms: {}\n", after.count(), caught.what());
  }
  comm.abort();
  return static_cast<exit_code>(told);
}

exit_code run_demo(const demo_options& options, const invocation& how) {
  for (const mishap what : all_mishaps) {
    if (options.what && options.what != what) {
      continue;
    }
    fmt::print("{}: {}\n", name_of(what), story_of(what));
    std::fflush(stdout);
    const int code =
        launch_ranks(
            {.ranks = 2,
             .share_gpu = true,
             .limit = 60s,
             .program = {how.rank_command.front(), "demo-rank", std::string{name_of(what)}}})
            .exit_code;
    if (code != told && code != 128 + SIGKILL) {
      throw failure(exit_code::failed, fmt::format("demo: the ranks ended with code {}", code));
    }
  }
  return exit_code::ok;
}

}  // namespace spark_comm::app
