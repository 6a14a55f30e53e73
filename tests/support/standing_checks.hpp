// SPDX-License-Identifier: AGPL-3.0-only
// What must hold after every case of docs/cases.md, in each process that survives it: nothing is
// left behind, waiting cost little, and a communicator that had no part in it still works.
#pragma once

#include "support/process_state.hpp"
#include "support/world.hpp"

#include <spark_comm/spark_comm.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <semaphore>
#include <string>
#include <thread>

namespace spark_comm::test_support {

/// A communicator of this process alone, whose other rank is a thread.
class bystander {
 public:
  explicit bystander(const runtime& loaded)
      : partner_([this, loaded] { be_partner(loaded); }),
        mine_(join(loaded, listening_.get_future().get(), 1)),
        stream_(mine_.device().create_stream()) {
    expect_to_work();
  }

  bystander(const bystander&) = delete;
  bystander& operator=(const bystander&) = delete;
  bystander(bystander&&) = delete;
  bystander& operator=(bystander&&) = delete;

  ~bystander() {
    is_over_ = true;
    next_.release();
    mine_.close(std::chrono::seconds{10});
    partner_.join();
  }

  void expect_to_work() {
    next_.release();
    EXPECT_EQ(sum(mine_, stream_), 3);
  }

 private:
  static std::int32_t sum(communicator& comm, const cuda::stream& stream) {
    std::int32_t value = comm.rank() + 1;
    all_reduce(comm, &value, &value, 1, data_type::int32, reduce_op::sum, stream);
    EXPECT_EQ(comm.wait(stream, std::chrono::seconds{10}), wait_result::done);
    return value;
  }

  communicator join(const runtime& loaded, const std::string& address, int rank) {
    join_options options{.name = "bystander", .supervise = {}};
    options.device = rank;
    options.on_listening = [this](const std::string& where) { listening_.set_value(where); };
    return communicator::join(loaded, {.address = address, .rank = rank, .world_size = 2}, options);
  }

  void be_partner(const runtime& loaded) {
    communicator comm = join(loaded, "127.0.0.1:0", 0);
    const cuda::stream stream = comm.device().create_stream();
    for (next_.acquire(); !is_over_; next_.acquire()) {
      EXPECT_EQ(sum(comm, stream), 3);
    }
    comm.close(std::chrono::seconds{10});
  }

  std::promise<std::string> listening_;
  std::counting_semaphore<> next_{0};
  std::atomic<bool> is_over_{false};
  std::thread partner_;
  communicator mine_;
  cuda::stream stream_;
};

/// The count once it has not changed for a while: threads that were told to end need a moment.
inline std::size_t at_rest(std::size_t (*count)()) {
  constexpr int enough = 50;
  std::size_t last = count();
  for (int same = 0; same < enough; ++same) {
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    const std::size_t now = count();
    same = now == last ? same : 0;
    last = now;
  }
  return last;
}

/// Waits until `count` is back at `most`. On a busy machine something older may have ended only
/// since that was counted, so fewer are right.
inline void expect_back_at(std::size_t most, std::size_t (*count)(), const char* what) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{3};
  while (count() > most && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  EXPECT_LE(count(), most) << what;
}

inline void expect_nothing_in_shared_memory() {
  for (const auto& entry : std::filesystem::directory_iterator{"/dev/shm"}) {
    EXPECT_EQ(entry.path().string().find("spark"), std::string::npos) << entry.path();
  }
}

/// The host runtime keeps a device's worker once it has started it: that is not left behind.
inline void start_device_workers(const runtime& loaded) {
  constexpr int most_ranks = 4;
  for (int ordinal = 0; ordinal < most_ranks; ++ordinal) {
    const cuda::device device = cuda::device::open(loaded.driver(), ordinal);
    const cuda::stream stream = device.create_stream();
    const auto buffer = cuda::device_buffer::allocate(device, sizeof(int));
    int value = 0;
    copy_async(device, buffer.address(), &value, sizeof value, stream);
    EXPECT_EQ(stream.wait(std::chrono::seconds{10}), wait_result::done);
  }
}

/// Runs a rank's part of a case, and makes the checks. For use in a process of its own, which
/// `run_rank_processes` sees end by itself and by no signal.
inline void with_standing_checks(const runtime& loaded, const std::function<void()>& part) {
  // A join or two, which cost the same whether one waits for them or not.
  constexpr std::chrono::milliseconds work{400};
  bystander other{loaded};
  start_device_workers(loaded);
  const std::size_t threads = at_rest(live_threads);
  const std::size_t descriptors = at_rest(open_descriptors);
  const auto begin = std::chrono::steady_clock::now();
  const auto used_before = cpu_time();
  part();
  EXPECT_LT(cpu_time() - used_before, work + (std::chrono::steady_clock::now() - begin) / 10);
  expect_back_at(descriptors, open_descriptors, "descriptors");
  expect_back_at(threads, live_threads, "threads");
  expect_nothing_in_shared_memory();
  other.expect_to_work();
}

/// An error of a join says what was done, by which rank, and by when if time ran out.
inline void expect_full_text(const error& thrown, int rank, int world_size) {
  const std::string text = thrown.what();
  EXPECT_EQ(thrown.context().rank, rank) << text;
  EXPECT_EQ(thrown.context().world_size, world_size) << text;
  EXPECT_NE(text.find("rank " + std::to_string(rank) + "/"), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("meet") || text.starts_with("join") ||
              text.starts_with("broadcast"))  // of the id
      << text;
  if (thrown.kind() == errc::timed_out) {
    EXPECT_NE(text.find("deadline"), std::string::npos) << text;
    EXPECT_TRUE(thrown.context().deadline) << text;
  }
}

}  // namespace spark_comm::test_support
