// SPDX-License-Identifier: AGPL-3.0-only
// Worlds of several rank processes that use the C interface and nothing else. What the operations
// do is tested with the C++ functions; here, that every argument arrives where it belongs.
#include "support/c_handles.hpp"
#include "support/ranks.hpp"

#include <spark_comm/spark_comm.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace spark_comm {
namespace {

using testing::c_buffer;
using testing::c_communicator;
using testing::c_error;
using testing::c_registration;
using testing::c_runtime;
using testing::c_stream;
using testing::c_window;
using testing::expect_c_error;
using testing::expect_ok;
using testing::load_host;
using testing::made_by;

constexpr std::int64_t second = 1'000'000'000;
constexpr int ranks = 3;

/// Where rank processes wait for each other by other means than their communicator: what one does
/// then meets nothing of another's under way.
class line_up {
 public:
  explicit line_up(int size) : size_(size) {}

  void operator()() {
    reached_ += size_;
    ++*arrived_;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    while (*arrived_ < reached_ && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_GE(*arrived_, reached_) << "the others did not come";
  }

 private:
  int size_;
  int reached_ = 0;  // each process counts by itself
  test_support::shared_value<std::atomic<int>> arrived_;
};

/// A rank of a world that meets in a file of its own.
class c_rank {
 public:
  c_rank(int rank, int size, const std::string& meeting, line_up& others)
      : others_(&others),
        loaded_(load_host()),
        comm_(joined(loaded_, rank, size, meeting)),
        stream_(made_by<c_stream>([this](auto** made, auto** failure) {
          return spark_comm_stream_create(spark_comm_communicator_device(comm()), made, failure);
        })) {}

  spark_comm_communicator* comm() const { return comm_.get(); }

  const spark_comm_runtime* runtime() const { return loaded_.get(); }

  int rank() const { return spark_comm_communicator_rank(comm()); }

  spark_comm_native_stream stream() const { return spark_comm_stream_native(stream_.get()); }

  void wait_for_others() const { (*others_)(); }

  void drain() const {
    spark_comm_progress progress = SPARK_COMM_PENDING;
    expect_ok([&](auto** failure) {
      return spark_comm_communicator_wait(comm(), stream(), 10 * second, &progress, failure);
    });
    EXPECT_EQ(progress, SPARK_COMM_DONE);
  }

  void reconnect(std::int32_t survivors_only = 0) const {
    const spark_comm_reconnect_options options{.struct_size = sizeof options,
                                               .deadline_ns = 10 * second,
                                               .survivors_only = survivors_only};
    expect_ok([&](auto** failure) {
      return spark_comm_communicator_reconnect(comm(), &options, failure);
    });
  }

  void close() const {
    expect_ok([this](auto** failure) {
      return spark_comm_communicator_close(comm(), 10 * second, failure);
    });
  }

 private:
  static c_communicator joined(const c_runtime& loaded,
                               int rank,
                               int size,
                               const std::string& meeting) {
    const std::string address = "file://" + meeting;
    spark_comm_world place{};
    place.struct_size = sizeof place;
    place.address = address.c_str();
    place.rank = rank;
    place.world_size = size;
    spark_comm_join_options options{};
    options.struct_size = sizeof options;
    options.name = "c";
    options.deadline_ns = 15 * second;
    return made_by<c_communicator>([&](auto** made, auto** failure) {
      return spark_comm_communicator_join(loaded.get(), &place, &options, made, failure);
    });
  }

  line_up* others_;
  c_runtime loaded_;
  c_communicator comm_;
  c_stream stream_;
};

/// A file in a folder of its own, gone with its scope.
class meeting_file {
 public:
  meeting_file() {
    std::string pattern = (std::filesystem::temp_directory_path() / "spark_comm-c-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }

  meeting_file(const meeting_file&) = delete;
  meeting_file& operator=(const meeting_file&) = delete;
  meeting_file(meeting_file&&) = delete;
  meeting_file& operator=(meeting_file&&) = delete;

  ~meeting_file() { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ / "meeting"; }

 private:
  std::filesystem::path folder_;
};

void in_c_world(int size, const std::function<void(const c_rank&)>& body) {
  const meeting_file meeting;
  line_up others{size};
  test_support::expect_all_succeeded(test_support::run_rank_processes(size, [&](int rank) {
    const c_rank here{rank, size, meeting.path(), others};
    ASSERT_NE(here.comm(), nullptr);
    here.wait_for_others();
    body(here);
    if (spark_comm_communicator_state(here.comm()) == SPARK_COMM_STATE_READY) {
      here.close();
    }
  }));
}

// On the host runtime, host memory is device memory.
using row = std::array<std::int32_t, ranks>;

TEST(c_operations, reduce_over_all_ranks_to_all_or_to_one) {
  in_c_world(ranks, [](const c_rank& here) {
    const row in{here.rank() + 1, 10, -here.rank()};
    row out{};
    expect_ok([&](auto** failure) {
      return spark_comm_all_reduce(here.comm(),
                                   in.data(),
                                   out.data(),
                                   in.size(),
                                   SPARK_COMM_INT32,
                                   SPARK_COMM_SUM,
                                   here.stream(),
                                   nullptr,
                                   failure);
    });
    here.drain();
    EXPECT_EQ(out, (row{6, 30, -3}));
    out = {};
    expect_ok([&](auto** failure) {
      return spark_comm_reduce(here.comm(),
                               in.data(),
                               out.data(),
                               in.size(),
                               SPARK_COMM_INT32,
                               SPARK_COMM_MIN,
                               2,
                               here.stream(),
                               nullptr,
                               failure);
    });
    here.drain();
    EXPECT_EQ(out, here.rank() == 2 ? (row{1, 10, -2}) : row{});
  });
}

TEST(c_operations, move_data_between_ranks) {
  in_c_world(ranks, [](const c_rank& here) {
    expect_ok(
        [&](auto** failure) { return spark_comm_barrier(here.comm(), 10 * second, failure); });
    const std::int32_t mine = 100 + here.rank();
    row all{};
    expect_ok([&](auto** failure) {
      return spark_comm_all_gather(
          here.comm(), &mine, all.data(), 1, SPARK_COMM_INT32, here.stream(), nullptr, failure);
    });
    here.drain();
    EXPECT_EQ(all, (row{100, 101, 102}));

    std::int32_t from_root = 0;
    expect_ok([&](auto** failure) {
      return spark_comm_broadcast(
          here.comm(), &mine, &from_root, 1, SPARK_COMM_INT32, 1, here.stream(), nullptr, failure);
    });
    std::int32_t share = 0;
    expect_ok([&](auto** failure) {
      return spark_comm_reduce_scatter(here.comm(),
                                       all.data(),
                                       &share,
                                       1,
                                       SPARK_COMM_INT32,
                                       SPARK_COMM_MAX,
                                       here.stream(),
                                       nullptr,
                                       failure);
    });
    const row blocks{10 * here.rank(), 10 * here.rank() + 1, 10 * here.rank() + 2};
    row exchanged{};
    expect_ok([&](auto** failure) {
      return spark_comm_all_to_all(here.comm(),
                                   blocks.data(),
                                   exchanged.data(),
                                   1,
                                   SPARK_COMM_INT32,
                                   here.stream(),
                                   nullptr,
                                   failure);
    });
    here.drain();
    EXPECT_EQ(from_root, 101);
    EXPECT_EQ(share, 100 + here.rank());
    EXPECT_EQ(exchanged, (row{here.rank(), 10 + here.rank(), 20 + here.rank()}));
  });
}

TEST(c_operations, all_to_all_takes_counts_and_offsets_for_each_rank) {
  in_c_world(2, [](const c_rank& here) {
    // Rank 0 gives one element to itself and two to rank 1, rank 1 none to rank 0 and one to
    // itself.
    const bool is_first = here.rank() == 0;
    const std::array<std::int32_t, 3> in{is_first ? 1 : 4, is_first ? 2 : 0, is_first ? 3 : 0};
    std::array<std::int32_t, 3> out{};
    const std::array<std::size_t, 2> send_counts{is_first ? 1U : 0U, is_first ? 2U : 1U};
    const std::array<std::size_t, 2> send_offsets{0, is_first ? 1U : 0U};
    const std::array<std::size_t, 2> recv_counts{is_first ? 1U : 2U, is_first ? 0U : 1U};
    const std::array<std::size_t, 2> recv_offsets{0, 2};
    spark_comm_all_to_all_layout layout{};
    layout.struct_size = sizeof layout;
    layout.send_counts = send_counts.data();
    layout.send_offsets = send_offsets.data();
    layout.recv_counts = recv_counts.data();
    layout.recv_offsets = recv_offsets.data();
    expect_ok([&](auto** failure) {
      return spark_comm_all_to_all_counts(here.comm(),
                                          in.data(),
                                          out.data(),
                                          &layout,
                                          SPARK_COMM_INT32,
                                          here.stream(),
                                          nullptr,
                                          failure);
    });
    here.drain();
    EXPECT_EQ(
        out,
        is_first ? (std::array<std::int32_t, 3>{1, 0, 0}) : (std::array<std::int32_t, 3>{2, 3, 4}));
  });
}

TEST(c_operations, a_group_sends_and_receives_around_a_ring) {
  in_c_world(ranks, [](const c_rank& here) {
    const std::int32_t mine = here.rank();
    std::int32_t got = -1;
    spark_comm_group* group = nullptr;
    expect_ok([&](auto** failure) { return spark_comm_group_begin(here.comm(), &group, failure); });
    expect_ok([&](auto** failure) {
      return spark_comm_send(here.comm(),
                             &mine,
                             1,
                             SPARK_COMM_INT32,
                             (here.rank() + 1) % ranks,
                             here.stream(),
                             nullptr,
                             failure);
    });
    expect_ok([&](auto** failure) {
      return spark_comm_recv(here.comm(),
                             &got,
                             1,
                             SPARK_COMM_INT32,
                             (here.rank() + ranks - 1) % ranks,
                             here.stream(),
                             nullptr,
                             failure);
    });
    expect_ok([&](auto** failure) { return spark_comm_group_commit(group, failure); });
    here.drain();
    EXPECT_EQ(got, (here.rank() + ranks - 1) % ranks);
  });
}

TEST(c_operations, an_overlapped_result_is_joined) {
  in_c_world(2, [](const c_rank& here) {
    std::array<float, 2> values{1.5F, static_cast<float>(here.rank())};
    spark_comm_overlapped* result = nullptr;
    ASSERT_TRUE(expect_ok([&](auto** failure) {
      return spark_comm_all_reduce_overlapped(here.comm(),
                                              values.data(),
                                              values.data(),
                                              values.size(),
                                              SPARK_COMM_FLOAT32,
                                              SPARK_COMM_SUM,
                                              here.stream(),
                                              nullptr,
                                              &result,
                                              failure);
    }));
    expect_ok(
        [&](auto** failure) { return spark_comm_overlapped_join(result, here.stream(), failure); });
    here.drain();
    spark_comm_progress progress = SPARK_COMM_PENDING;
    expect_ok(
        [&](auto** failure) { return spark_comm_overlapped_poll(result, &progress, failure); });
    EXPECT_EQ(progress, SPARK_COMM_DONE);
    EXPECT_EQ(values, (std::array{3.0F, 1.0F}));
    spark_comm_overlapped_destroy(result);
  });
}

TEST(c_operations, the_fused_norm_takes_every_field_of_its_struct) {
  in_c_world(2, [](const c_rank& here) {
    constexpr std::size_t hidden = 8;
    std::vector<float> partial(hidden, 1.0F);
    std::vector<float> residual(hidden, 2.0F);
    const std::vector<float> weight(hidden, 3.0F);
    std::vector<float> out(hidden);
    spark_comm_rms_norm_arguments what{};
    what.struct_size = sizeof what;
    what.partial = partial.data();
    what.residual = residual.data();
    what.weight = weight.data();
    what.out = out.data();
    what.rows = 1;
    what.hidden = hidden;
    what.dtype = SPARK_COMM_FLOAT32;
    what.epsilon = 9.0F;
    ASSERT_TRUE(expect_ok([&](auto** failure) {
      return spark_comm_all_reduce_rms_norm(here.comm(), &what, here.stream(), nullptr, failure);
    }));
    here.drain();
    EXPECT_EQ(residual.front(), 4.0F);
    // Mean square 16, plus epsilon 9, is the square of 5.
    EXPECT_NEAR(out.front(), 4.0F / 5.0F * 3.0F, 1e-6F);
  });
}

TEST(c_registration, of_a_buffer_and_a_window_is_effective_over_a_reconnect_until_released) {
  in_c_world(2, [](const c_rank& here) {
    constexpr std::size_t bytes = 4096;
    const auto memory = made_by<c_buffer>([&](auto** made, auto** failure) {
      return spark_comm_symmetric_buffer_allocate(
          here.runtime(), spark_comm_communicator_device(here.comm()), bytes, made, failure);
    });
    void* address = spark_comm_device_buffer_address(memory.get());
    const auto plain = made_by<c_registration>([&](auto** made, auto** failure) {
      return spark_comm_register_buffer(here.comm(), address, bytes, made, failure);
    });
    const auto window = made_by<c_window>([&](auto** made, auto** failure) {
      return spark_comm_register_window(here.comm(), address, bytes, made, failure);
    });
    const auto expect_effective = [&](std::int32_t expected) {
      std::int32_t answer = -1;
      expect_ok([&](auto** failure) {
        return spark_comm_registration_is_effective(plain.get(), &answer, failure);
      });
      EXPECT_EQ(answer, expected);
      answer = -1;
      expect_ok([&](auto** failure) {
        return spark_comm_window_is_effective(window.get(), &answer, failure);
      });
      EXPECT_EQ(answer, expected);
    };
    expect_effective(1);
    here.wait_for_others();
    here.reconnect();
    EXPECT_EQ(spark_comm_communicator_generation(here.comm()), 2U);
    expect_effective(1);
    void* native = nullptr;
    expect_ok(
        [&](auto** failure) { return spark_comm_window_native(window.get(), &native, failure); });
    EXPECT_NE(native, nullptr);
    expect_ok(
        [&](auto** failure) { return spark_comm_registration_release(plain.get(), failure); });
    expect_ok([&](auto** failure) { return spark_comm_window_release(window.get(), failure); });
    expect_effective(0);
    expect_c_error(SPARK_COMM_INVALID_USAGE, "", [&](auto** failure) {
      return spark_comm_window_native(window.get(), &native, failure);
    });
    EXPECT_EQ(native, nullptr);
  });
}

/// An operation that rank 1, which is gone, does not take part in.
void expect_lost_rank(const c_rank& here) {
  std::int32_t value = 1;
  const auto reduce = [&](auto** failure) {
    const spark_comm_call_options options{.struct_size = sizeof options, .deadline_ns = 8 * second};
    const spark_comm_code code = spark_comm_all_reduce(here.comm(),
                                                       &value,
                                                       &value,
                                                       1,
                                                       SPARK_COMM_INT32,
                                                       SPARK_COMM_SUM,
                                                       here.stream(),
                                                       &options,
                                                       failure);
    if (code != SPARK_COMM_OK) {
      return code;
    }
    spark_comm_progress progress = SPARK_COMM_PENDING;
    return spark_comm_communicator_wait(
        here.comm(), here.stream(), 10 * second, &progress, failure);
  };
  expect_c_error(SPARK_COMM_PEER_LOST, "rank 1", reduce);
}

TEST(c_reconnect, survivors_go_on_alone_and_are_numbered_anew) {
  in_c_world(ranks, [](const c_rank& here) {
    if (here.rank() == 1) {
      ::_exit(0);
    }
    expect_lost_rank(here);
    here.reconnect(1);
    EXPECT_EQ(spark_comm_communicator_world_size(here.comm()), 2);
    std::int32_t sum = here.rank() + 1;
    expect_ok([&](auto** failure) {
      return spark_comm_all_reduce(here.comm(),
                                   &sum,
                                   &sum,
                                   1,
                                   SPARK_COMM_INT32,
                                   SPARK_COMM_SUM,
                                   here.stream(),
                                   nullptr,
                                   failure);
    });
    here.drain();
    EXPECT_EQ(sum, 3);
  });
}

TEST(c_failures, a_rank_that_never_comes_is_named_in_the_error_of_its_operation) {
  in_c_world(2, [](const c_rank& here) {
    if (here.rank() == 1) {
      ::_exit(0);  // before the operation that rank 0 issues
    }
    expect_lost_rank(here);
    EXPECT_EQ(spark_comm_communicator_state(here.comm()), SPARK_COMM_STATE_BROKEN);
    const c_error last{spark_comm_communicator_last_error(here.comm())};
    spark_comm_error_details details{};
    details.struct_size = sizeof details;
    ASSERT_EQ(spark_comm_error_describe(last.get(), &details), SPARK_COMM_OK);
    EXPECT_EQ(details.code, SPARK_COMM_PEER_LOST);
    EXPECT_EQ(details.recovery, SPARK_COMM_RECONNECT);
    EXPECT_STREQ(details.communicator, "c");
    EXPECT_EQ(details.rank, 0);
    EXPECT_EQ(details.world_size, 2);
    ASSERT_EQ(details.peer_count, 1U);
    EXPECT_EQ(details.peers[0], 1);
  });
}

}  // namespace
}  // namespace spark_comm
