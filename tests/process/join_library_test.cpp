// SPDX-License-Identifier: AGPL-3.0-only
// Ranks that loaded different libraries, ids with every byte value, and little shared memory: BC-06
// and BC-25 of docs/cases.md.
#include "process/children.hpp"
#include "support/counted_nccl.hpp"
#include "support/expect_error.hpp"
#include "support/log_capture.hpp"
#include "support/standing_checks.hpp"
#include "support/world.hpp"
#include "unit/rendezvous/raw_peer.hpp"

#include <spark_comm/spark_comm.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <span>
#include <string>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using nccl::abi::unique_id;
using rendezvous::bytes;
using rendezvous::detail::frame_kind;
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

constexpr std::size_t id_bytes = sizeof(unique_id::internal);

TEST(join_id, arrives_whole_whatever_its_bytes) {
  struct ids {
    unique_id real;
    unique_id shown;
  };

  std::vector<unique_id> patterns(4);
  std::size_t zero_at[] = {0, 17, 127};
  for (std::size_t i = 0; i < std::size(zero_at); ++i) {
    std::ranges::fill(patterns[i].internal, static_cast<char>(0xa5));
    patterns[i].internal[zero_at[i]] = 0;
  }
  for (const unique_id& pattern : patterns) {  // the last is all zeros
    const meeting_place place;
    const shared_value<ids> shared;
    expect_all_succeeded(run_rank_processes(3, [&](int rank) {
      const runtime loaded = watched_runtime();
      watched_calls& calls = watched_calls::here();
      calls.on_id = [&](unique_id& id) {
        shared->real = id;
        id = pattern;
      };
      calls.on_init = [&](unique_id& id) {
        EXPECT_TRUE(std::ranges::equal(id.internal, pattern.internal));
        id = shared->real;
      };
      with_standing_checks(host_runtime(), [&] {
        communicator comm =
            communicator::join(loaded, place.of(rank, 3), test_options(place, rank));
        barrier(comm, 10s);
        comm.close(10s);
      });
      EXPECT_EQ(calls.ids, rank == 0 ? 1 : 0);
      EXPECT_EQ(calls.inits, 1);
    }));
  }
}

/// Meets a worker as the head of two, and hands out an id that ends too soon.
void be_head_that_stops_short(const raw_listener& listener) {
  using namespace rendezvous::detail;
  raw_socket line = listener.accept();
  EXPECT_TRUE(line.read_frame(frame_kind::hello));
  line.send_frame(frame_kind::roster,
                  encode(roster_message{.round = 1,
                                        .generation = 1,
                                        .secret = {},
                                        .members = {0, 1},
                                        .listeners = {"127.0.0.1:1", "127.0.0.1:1"}}));
  EXPECT_TRUE(line.read_frame(frame_kind::ready));
  line.send_frame(frame_kind::commit, encode(round_message{.round = 1}));
  EXPECT_TRUE(line.read_frame(frame_kind::committed));
  const bytes body = encode(step_message{.step = 1, .payload = bytes(id_bytes)});
  line.send(encode_header(
      {.body_bytes = static_cast<std::uint32_t>(body.size()), .kind = frame_kind::broadcast}));
  line.send(std::span{body}.first(body.size() - 1));
}

TEST(join_id, cut_short_is_not_padded) {
  const raw_listener listener;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    if (rank == 0) {
      be_head_that_stops_short(listener);
      return;
    }
    const runtime loaded = watched_runtime();
    with_standing_checks(host_runtime(), [&] {
      const auto before = clock::now();
      const error thrown = error_of(
          [&] { return communicator::join(loaded, {listener.where(), 1, 2}, {.supervise = {}}); });
      EXPECT_EQ(thrown.kind(), errc::peer_lost) << thrown.what();
      EXPECT_THAT(thrown.what(), HasSubstr("closed after 127 of 128 bytes"));
      expect_full_text(thrown, 1, 2);
      EXPECT_LT(clock::now() - before, 1s);
    });
    EXPECT_EQ(watched_calls::here().inits, 0);
  }));
}

TEST(join_version, of_nccl_that_differs_is_refused_on_both_sides_before_nccl_is_called) {
  const meeting_place place;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    watched_calls::here().version = rank == 0 ? 22809 : 23007;
    const runtime loaded = watched_runtime();
    with_standing_checks(host_runtime(), [&] {
      const world mine = place.of(rank, 2);
      const auto before = clock::now();
      const error thrown =
          error_of([&] { return communicator::join(loaded, mine, test_options(place, rank)); });
      EXPECT_EQ(thrown.kind(), errc::mismatch) << thrown.what();
      EXPECT_THAT(thrown.what(), HasSubstr("NCCL version differs: rank 1 has 2.30.7"));
      EXPECT_THAT(thrown.what(), HasSubstr("rank 0 has 2.28.9"));
      expect_full_text(thrown, rank, 2);
      EXPECT_TRUE(rank == 0 || clock::now() - before < 1s);
    });
    EXPECT_EQ(watched_calls::here().ids, 0);
    EXPECT_EQ(watched_calls::here().inits, 0);
  }));
}

TEST(join_version, of_the_protocol_that_differs_is_refused_on_both_sides) {
  const std::string words =
      "the guest speaks 9, rank 0 speaks " + std::to_string(rendezvous::detail::protocol_version);
  const meeting_place place;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    if (rank == 1) {
      const raw_socket guest = rendezvous::testing::connect_to(place.of(1, 2).address);
      guest.send_frame(frame_kind::hello, rendezvous::testing::raw_hello(1, 2, 9));
      const auto refusal = guest.read_frame(frame_kind::refusal);
      ASSERT_TRUE(refusal);
      EXPECT_THAT(rendezvous::detail::decode_refusal(*refusal)->reason, HasSubstr(words));
      return;
    }
    const runtime loaded = watched_runtime();
    with_standing_checks(host_runtime(), [&] {
      const error thrown = error_of(
          [&] { return communicator::join(loaded, place.of(0, 2), test_options(place, 0)); });
      EXPECT_EQ(thrown.kind(), errc::mismatch) << thrown.what();
      EXPECT_THAT(thrown.what(), HasSubstr(words));
      expect_full_text(thrown, 0, 2);
    });
    EXPECT_EQ(watched_calls::here().ids, 0);
  }));
}

/// A copy of the host runtime with another build id, in a folder of its own.
class other_build {
 public:
  explicit other_build(const std::string& build_id) {
    std::string pattern = std::filesystem::temp_directory_path() / "spark_comm_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    std::ifstream in{SPARK_COMM_TEST_HOST_RUNTIME, std::ios::binary};
    std::string image{std::istreambuf_iterator<char>{in}, {}};
    std::string id;
    for (std::size_t i = 0; i + 1 < build_id.size(); i += 2) {
      id.push_back(static_cast<char>(std::stoi(build_id.substr(i, 2), nullptr, 16)));
    }
    const std::size_t at = image.find(id);
    EXPECT_NE(at, std::string::npos);
    image.at(at) = static_cast<char>(image.at(at) ^ 0x0f);
    std::ofstream{file(), std::ios::binary} << image;
  }

  other_build(const other_build&) = delete;
  other_build& operator=(const other_build&) = delete;
  other_build(other_build&&) = delete;
  other_build& operator=(other_build&&) = delete;

  ~other_build() { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string file() const { return folder_ / "libspark_comm_host.so"; }

 private:
  std::filesystem::path folder_;
};

TEST(join_version, of_another_build_is_said_once_on_both_sides_with_both_files) {
  const shared_value<std::array<char, 128>> build_id;
  expect_all_succeeded(run_rank_processes(1, [&](int) {
    const std::string id = host_runtime().library().build_id();
    ASSERT_LT(id.size(), build_id->size());
    std::ranges::copy(id, build_id->begin());
  }));
  ASSERT_STRNE(build_id->data(), "");
  const other_build copy{build_id->data()};
  const meeting_place place;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    const testing::log_capture said;
    const std::string file = rank == 0 ? SPARK_COMM_TEST_HOST_RUNTIME : copy.file();
    const runtime loaded = runtime::load(
        runtime_kind::host, {.nccl_library = {}, .host_library = file, .log = said.log()});
    communicator comm = communicator::join(loaded, place.of(rank, 2), test_options(place, rank));
    barrier(comm, 10s);
    comm.close(10s);
    const auto messages = said.messages();
    EXPECT_EQ(std::ranges::count(messages, severity::warning, &diagnostic::level), 1)
        << said.text();
    EXPECT_THAT(said.text(), HasSubstr("NCCL build differs: rank 1 has "));
    EXPECT_THAT(said.text(), HasSubstr("(" + copy.file() + ")"));
    EXPECT_THAT(said.text(), HasSubstr("libspark_comm_host.so), rank 0 has"));
  }));
}

/// Puts a file system of its own over /dev/shm, for this process alone.
void mount_shared_memory(const char* options) {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", "/dev/shm", "tmpfs", 0, options) != 0) {
    throw std::system_error{errno, std::generic_category(), "mount"};
  }
}

bool may_mount() {
  testing::child probe{[](const testing::teller&) { mount_shared_memory("size=64k"); }};
  return probe.wait() == 0;
}

void become_nobody() {
  constexpr uid_t nobody = 65534;
  if (::setgid(nobody) != 0 || ::setuid(nobody) != 0 ||
      // Else ranks, though of one user, may not look into each other.
      ::prctl(PR_SET_DUMPABLE, 1) != 0) {
    throw std::system_error{errno, std::generic_category(), "setuid"};
  }
}

void reduce_eight_mebibytes(const runtime& loaded, const meeting_place& place, int rank) {
  communicator comm = communicator::join(loaded, place.of(rank, 2), test_options(place, rank));
  const cuda::stream stream = comm.device().create_stream();
  std::vector<float> values(std::size_t{2} << 20, static_cast<float>(rank + 1));
  all_reduce(comm,
             values.data(),
             values.data(),
             values.size(),
             data_type::float32,
             reduce_op::sum,
             stream);
  EXPECT_EQ(comm.wait(stream, 10s), wait_result::done);
  EXPECT_TRUE(std::ranges::all_of(values, [](float each) { return each == 3.0F; }));
  comm.close(10s);
}

TEST(join_shared_memory, that_is_small_full_or_forbidden_is_not_needed) {
  if (!may_mount()) {
    GTEST_SKIP() << "no privilege to mount";
  }
  for (const char* const state : {"small", "used", "forbidden"}) {
    SCOPED_TRACE(state);
    const meeting_place place;
    expect_all_succeeded(run_rank_processes(2, [&](int rank) {
      const std::string how = state;
      mount_shared_memory(how == "forbidden" ? "size=1m,mode=0555" : "size=1m");
      if (how == "used") {
        std::ofstream{"/dev/shm/other"} << std::string(std::size_t{700} << 10, 'x');
      }
      if (how == "forbidden") {
        become_nobody();
      }
      const runtime loaded = host_runtime();
      with_standing_checks(loaded, [&] { reduce_eight_mebibytes(loaded, place, rank); });
    }));
  }
}

TEST(join_shared_memory, without_room_for_a_flight_record_is_said_with_its_numbers) {
  if (!may_mount()) {
    GTEST_SKIP() << "no privilege to mount";
  }
  const meeting_place place;
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    const runtime loaded = host_runtime();
    with_standing_checks(loaded, [&] {
      join_options options = test_options(place, rank);
      options.deadline = 5s;
      if (rank == 1) {
        mount_shared_memory("size=64k");
        options.supervise.record_directory = "/dev/shm";
      }
      const auto before = clock::now();
      const error thrown =
          error_of([&] { return communicator::join(loaded, place.of(rank, 2), options); });
      EXPECT_LT(clock::now() - before, 6s);
      if (rank == 1) {
        EXPECT_EQ(thrown.kind(), errc::system_failed) << thrown.what();
        EXPECT_EQ(thrown.native().number, ENOSPC) << thrown.what();
        EXPECT_THAT(thrown.what(), HasSubstr("bytes for '/dev/shm/"));
        EXPECT_THAT(thrown.what(), HasSubstr("bytes are free there"));
        EXPECT_TRUE(std::filesystem::is_empty("/dev/shm"));
      } else {
        EXPECT_TRUE(thrown.kind() == errc::peer_lost || thrown.kind() == errc::timed_out)
            << thrown.what();
      }
    });
  }));
}

}  // namespace
}  // namespace spark_comm
