// SPDX-License-Identifier: AGPL-3.0-only
// Memory that is registered: each native call at its time and once, whatever the program does.
#include "support/expect_error.hpp"
#include "support/log_capture.hpp"
#include "support/process_state.hpp"
#include "support/world.hpp"

#include <spark_comm/spark_comm.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using test_support::in_world;
using test_support::meeting_place;
using testing::error_of;
using ::testing::HasSubstr;
using testing::log_capture;

constexpr std::size_t page = 4096;

cuda::device_buffer symmetric(const communicator& comm, std::size_t bytes = 4 * page) {
  return allocate_buffer(comm.loaded_runtime(), comm.device(), bytes, memory_kind::symmetric);
}

std::byte* at(const cuda::device_buffer& memory, std::size_t offset) {
  return static_cast<std::byte*>(memory.address()) + offset;
}

// The ranks' numbers summed in the first element.
std::int32_t sum_in(communicator& comm, const cuda::device_buffer& memory) {
  const cuda::stream s = comm.device().create_stream();
  auto* value = memory.as<std::int32_t>().address;  // host memory, on the host runtime
  *value = comm.rank() + 1;
  all_reduce(comm, value, value, 1, data_type::int32, reduce_op::sum, s);
  EXPECT_EQ(comm.wait(s, 10s), wait_result::done);
  return *value;
}

// What was reported beyond information, one a line.
std::string complaints(const log_capture& heard) {
  std::string text;
  for (const diagnostic& each : heard.messages()) {
    text += each.level == severity::info ? std::string{} : each.text + "\n";
  }
  return text;
}

std::ptrdiff_t lines(const std::string& text) {
  return std::ranges::count(text, '\n');
}

// Waits until both ranks are here, by other means than the communicator: what one does then meets
// nothing of the other's under way.
class line_up {
 public:
  void operator()() const {
    const int target = ++*arrived_ <= 2 ? 2 : 4;
    const auto end = clock::now() + 10s;
    while (*arrived_ < target && clock::now() < end) {
      std::this_thread::sleep_for(200us);
    }
  }

 private:
  test_support::shared_value<std::atomic<int>> arrived_;
};

// Two ranks whose every message is kept: a native call that NCCL refused would be among them.
void in_heard_world(const std::function<void(communicator&, const log_capture&)>& body,
                    const test_support::option_changes& change = {}) {
  const meeting_place place;
  test_support::expect_all_succeeded(test_support::run_rank_processes(2, [&](int rank) {
    const log_capture heard;
    communicator comm =
        test_support::join_at(place, test_support::host_runtime(heard.log()), rank, 2, change);
    body(comm, heard);
    if (comm.state() == communicator_state::ready) {
      comm.close(10s);
    }
  }));
}

TEST(registration, is_effective_and_released_by_its_own_call_once) {
  in_heard_world([](communicator& comm, const log_capture& heard) {
    const auto memory = symmetric(comm);
    for (const bool is_window_first : {true, false}) {
      std::optional<registration> plain = comm.register_buffer(memory);
      std::optional<window> shared = comm.register_window(memory);
      EXPECT_TRUE(plain->is_effective());
      EXPECT_TRUE(shared->is_effective());
      EXPECT_NE(shared->native(), nullptr);
      EXPECT_EQ(plain->address(), memory.address());
      EXPECT_EQ(shared->size_bytes(), memory.size_bytes());
      EXPECT_EQ(sum_in(comm, memory), 3);
      if (is_window_first) {
        shared->release();
        plain->release();
      } else {
        plain->release();
        shared->release();
      }
      EXPECT_FALSE(plain->is_effective());
      EXPECT_EQ(error_of([&] { static_cast<void>(shared->native()); }).kind(), errc::invalid_usage);
      plain->release();
      shared->release();
    }
    EXPECT_EQ(complaints(heard), "");
  });
}

TEST(registration, may_go_after_an_abort_or_a_close_without_a_native_call) {
  for (const bool is_aborted : {true, false}) {
    const line_up both;
    in_heard_world([&](communicator& comm, const log_capture& heard) {
      const auto memory = symmetric(comm);
      {
        const registration plain = comm.register_buffer(memory);
        const window shared = comm.register_window(memory);
        both();
        if (is_aborted) {
          comm.abort();
        } else {
          comm.close(5s);
        }
        EXPECT_FALSE(plain.is_effective());
        EXPECT_FALSE(shared.is_effective());
      }
      EXPECT_THAT(heard.text(), ::testing::Not(HasSubstr("registration")));
    });
  }
}

TEST(registration, of_the_same_range_again_or_of_a_part_is_independent) {
  in_heard_world([](communicator& comm, const log_capture& heard) {
    const auto memory = symmetric(comm);
    registration first = comm.register_buffer(memory);
    const registration again = comm.register_buffer(memory);
    const registration part = comm.register_buffer(at(memory, page), page);
    first.release();
    EXPECT_TRUE(again.is_effective());
    EXPECT_TRUE(part.is_effective());
    EXPECT_EQ(sum_in(comm, memory), 3);
    EXPECT_EQ(complaints(heard), "");
  });
}

TEST(registration, of_nothing_or_a_misaligned_window_is_refused_before_any_native_call) {
  in_heard_world([](communicator& comm, const log_capture& heard) {
    const auto memory = symmetric(comm);
    const auto refused = [](const std::function<void()>& call) {
      const error failure = error_of(call);
      EXPECT_EQ(failure.kind(), errc::invalid_argument) << failure.what();
      return std::string{failure.what()};
    };
    static_cast<void>(refused([&] { static_cast<void>(comm.register_buffer(nullptr, page)); }));
    static_cast<void>(
        refused([&] { static_cast<void>(comm.register_buffer(memory.address(), 0)); }));
    static_cast<void>(refused([&] { static_cast<void>(comm.register_window(nullptr, page)); }));
    static_cast<void>(
        refused([&] { static_cast<void>(comm.register_window(memory.address(), 0)); }));
    EXPECT_THAT(refused([&] { static_cast<void>(comm.register_window(at(memory, 1), page)); }),
                HasSubstr("4096"));
    EXPECT_EQ(comm.state(), communicator_state::ready);
    const window aligned = comm.register_window(at(memory, page), page);
    EXPECT_TRUE(aligned.is_effective());
    EXPECT_EQ(complaints(heard), "");
  });
}

TEST(registration, of_a_buffer_that_is_freed_goes_first_and_says_so) {
  in_heard_world([](communicator& comm, const log_capture& heard) {
    std::optional<cuda::device_buffer> memory = symmetric(comm);
    registration plain = comm.register_buffer(*memory);
    window shared = comm.register_window(*memory);
    memory.reset();
    EXPECT_FALSE(plain.is_effective());
    EXPECT_FALSE(shared.is_effective());
    EXPECT_THAT(heard.text(), HasSubstr("was freed while it was registered"));
    EXPECT_EQ(lines(complaints(heard)), 2) << heard.text();
    memory = symmetric(comm);  // the same address, as a rule
    const registration anew = comm.register_buffer(*memory);
    EXPECT_TRUE(anew.is_effective());
    EXPECT_EQ(sum_in(comm, *memory), 3);
    plain.release();
    shared.release();
    EXPECT_TRUE(anew.is_effective());
    EXPECT_EQ(lines(complaints(heard)), 2) << heard.text();
  });
}

TEST(registration, of_which_nccl_took_no_notice_is_not_effective_and_said_once) {
  ::setenv("NCCL_LOCAL_REGISTER", "0", 1);
  ::setenv("NCCL_WIN_ENABLE", "0", 1);
  in_heard_world([](communicator& comm, const log_capture& heard) {
    const auto memory = symmetric(comm);
    registration first = comm.register_buffer(memory);
    const registration second = comm.register_buffer(memory);
    const window shared = comm.register_window(memory);
    EXPECT_FALSE(first.is_effective());
    EXPECT_FALSE(second.is_effective());
    EXPECT_FALSE(shared.is_effective());
    EXPECT_EQ(shared.native(), nullptr);
    EXPECT_EQ(sum_in(comm, memory), 3);
    first.release();
    EXPECT_THAT(heard.text(), HasSubstr("took no notice of a buffer"));
    EXPECT_THAT(heard.text(), HasSubstr("took no notice of a window"));
    EXPECT_EQ(lines(complaints(heard)), 2) << heard.text();
  });
  ::unsetenv("NCCL_LOCAL_REGISTER");
  ::unsetenv("NCCL_WIN_ENABLE");
}

TEST(registration, is_not_released_while_operations_are_outstanding) {
  const test_support::shared_value<std::atomic<bool>> may_go;
  in_heard_world([&](communicator& comm, const log_capture&) {
    const auto memory = symmetric(comm);
    window shared = comm.register_window(memory);
    barrier(comm, 10s);
    const cuda::stream s = comm.device().create_stream();
    if (comm.rank() == 1) {
      while (!*may_go) {
        std::this_thread::sleep_for(1ms);
      }
    }
    auto* value = memory.as<std::int32_t>().address;
    all_reduce(comm, value, value, 1, data_type::int32, reduce_op::max, s);
    if (comm.rank() == 0) {
      const error failure = error_of([&] { shared.release(); });
      EXPECT_EQ(failure.kind(), errc::invalid_usage) << failure.what();
      EXPECT_THAT(failure.what(), HasSubstr("outstanding"));
      EXPECT_TRUE(shared.is_effective());
      *may_go = true;
    }
    EXPECT_EQ(comm.wait(s, 10s), wait_result::done);
    shared.release();
    EXPECT_FALSE(shared.is_effective());
    EXPECT_EQ(comm.state(), communicator_state::ready);
  });
}

TEST(registration, a_thousand_times_leaves_nothing_behind) {
  in_heard_world([](communicator& comm, const log_capture& heard) {
    const auto memory = symmetric(comm);
    std::size_t descriptors = 0;
    std::size_t threads = 0;
    std::size_t mappings = 0;
    for (int round = 0; round < 1000; ++round) {
      const registration plain = comm.register_buffer(memory);
      const window shared = comm.register_window(memory);
      if (round == 10) {
        descriptors = test_support::open_descriptors();
        threads = test_support::live_threads();
        mappings = test_support::memory_mappings();
      }
    }
    EXPECT_EQ(test_support::open_descriptors(), descriptors);
    EXPECT_EQ(test_support::live_threads(), threads);
    EXPECT_LE(test_support::memory_mappings(), mappings + 2);
    EXPECT_EQ(complaints(heard), "");
  });
}

TEST(registration, a_window_that_not_all_ranks_make_ends_at_the_deadline) {
  in_heard_world(
      [](communicator& comm, const log_capture&) {
        const auto memory = symmetric(comm);
        if (comm.rank() == 0) {
          const auto begin = clock::now();
          const error failure = error_of([&] { static_cast<void>(comm.register_window(memory)); });
          EXPECT_EQ(failure.kind(), errc::timed_out) << failure.what();
          EXPECT_LT(clock::now() - begin, 3s);
          EXPECT_EQ(comm.state(), communicator_state::broken);
        } else {
          const auto end = clock::now() + 5s;
          while (comm.state() == communicator_state::ready && clock::now() < end) {
            std::this_thread::sleep_for(1ms);
          }
          EXPECT_EQ(comm.last_error().value().context().peers, std::vector{0});
        }
        comm.abort();
      },
      [](int, join_options& options) { options.operation_deadline = 400ms; });
}

TEST(registration, all_of_them_are_made_anew_by_a_reconnect) {
  const line_up both;
  in_heard_world([&](communicator& comm, const log_capture& heard) {
    const auto memory = symmetric(comm);
    const auto other = symmetric(comm);
    const registration plain = comm.register_buffer(memory);
    const window first = comm.register_window(memory);
    std::optional<window> gone = comm.register_window(other);
    window last = comm.register_window(other);
    gone.reset();
    both();
    comm.abort();
    both();
    EXPECT_FALSE(plain.is_effective());
    EXPECT_EQ(error_of([&] { static_cast<void>(first.native()); }).kind(), errc::invalid_usage);
    EXPECT_EQ(error_of([&] { static_cast<void>(comm.register_buffer(memory)); }).kind(),
              errc::aborted);
    comm.reconnect(10s);
    EXPECT_TRUE(plain.is_effective());
    EXPECT_TRUE(first.is_effective());
    EXPECT_TRUE(last.is_effective());
    EXPECT_EQ(sum_in(comm, memory), 3);
    last.release();
    EXPECT_TRUE(first.is_effective());
    EXPECT_THAT(heard.text(), ::testing::Not(HasSubstr("registration")));
  });
}

TEST(registration, in_a_world_of_one_is_kept_and_does_nothing) {
  in_world(1, [](communicator& comm) {
    const auto memory = symmetric(comm);
    registration plain = comm.register_buffer(memory.as<float>());
    window shared = comm.register_window(memory.as<float>());
    EXPECT_FALSE(plain.is_effective());
    EXPECT_EQ(shared.native(), nullptr);
    plain.release();
    shared.release();
  });
}

TEST(registration, outlives_its_communicator) {
  test_support::expect_all_succeeded(test_support::run_rank_processes(1, [](int) {
    const runtime loaded = test_support::host_runtime();
    std::optional<registration> kept;
    const auto memory = cuda::device_buffer::allocate(cuda::device::open(loaded.driver(), 0), page);
    {
      communicator comm = communicator::join(
          loaded, {.address = {}, .rank = 0, .world_size = 1}, {.supervise = {}});
      kept = comm.register_buffer(memory);
      comm.close(1s);
    }
    EXPECT_FALSE(kept->is_effective());
    kept->release();
  }));
}

TEST(memory, symmetric_and_plain_are_allocated_and_freed_by_their_own_calls) {
  test_support::expect_all_succeeded(test_support::run_rank_processes(1, [](int) {
    const log_capture heard;
    const runtime loaded = test_support::host_runtime(heard.log());
    const auto device = cuda::device::open(loaded.driver(), 0);
    for (const memory_kind kind : {memory_kind::plain, memory_kind::symmetric}) {
      const auto memory = allocate_buffer(loaded, device, page, kind);
      EXPECT_EQ(memory.size_bytes(), page);
      EXPECT_NE(memory.address(), nullptr);
      EXPECT_EQ(
          error_of([&] { static_cast<void>(allocate_buffer(loaded, device, 0, kind)); }).kind(),
          errc::invalid_argument);
    }
    EXPECT_EQ(complaints(heard), "");
  }));
}

TEST(memory, a_watcher_is_told_before_the_free_unless_it_has_gone) {
  test_support::expect_all_succeeded(test_support::run_rank_processes(1, [](int) {
    const runtime loaded = test_support::host_runtime();
    const auto device = cuda::device::open(loaded.driver(), 0);
    int told = 0;
    {
      const auto memory = cuda::device_buffer::allocate(device, page);
      const auto stays = memory.watch([&] { ++told; });
      static_cast<void>(memory.watch([&] { told += 100; }));
      EXPECT_EQ(told, 0);
    }
    EXPECT_EQ(told, 0) << "the watcher went first";
    std::shared_ptr<void> stays;
    {
      auto memory = cuda::device_buffer::allocate(device, page);
      stays = memory.watch([&] { ++told; });
      const auto moved = std::move(memory);
      EXPECT_THROW(static_cast<void>(memory.watch([] {})),
                   error);  // NOLINT(bugprone-use-after-move)
    }
    EXPECT_EQ(told, 1);
  }));
}

}  // namespace
}  // namespace spark_comm
