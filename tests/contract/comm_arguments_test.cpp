// SPDX-License-Identifier: AGPL-3.0-only
// What operations refuse before anything native happens, and that a refusal changes nothing.
#include "support/elements.hpp"
#include "support/expect_error.hpp"
#include "support/world.hpp"

#include <spark_comm/spark_comm.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using test_support::element_buffer;
using test_support::in_world;
using testing::error_of;
using testing::expect_error;

constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();

// State, numbering and current device as before, and the next correct operation works.
void expect_unchanged(communicator& comm, std::uint64_t sequence) {
  EXPECT_EQ(comm.state(), communicator_state::ready);
  EXPECT_EQ(comm.sequence(), sequence);
  const cuda::stream s = comm.device().create_stream();
  std::int32_t one = 1;
  all_reduce(comm, &one, &one, 1, data_type::int32, reduce_op::sum, s);
  ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
  EXPECT_EQ(one, comm.world_size());
}

struct refusal {
  std::string words;
  std::function<void(communicator&, void*, cuda::stream_ref)> call;
};

std::vector<refusal> refusals() {
  using enum data_type;
  const auto shifted = [](void* base, std::size_t bytes) {
    return static_cast<void*>(static_cast<std::byte*>(base) + bytes);
  };
  const auto end_of_memory =
      reinterpret_cast<void*>(std::numeric_limits<std::uintptr_t>::max() - 63);
  return {
      {"in is null",
       [](communicator& c, void* m, cuda::stream_ref s) {
         all_reduce(c, nullptr, m, 4, float32, reduce_op::sum, s);
       }},
      {"out is null",
       [](communicator& c, void* m, cuda::stream_ref s) {
         broadcast(c, m, nullptr, 4, float32, rank_id{0}, s);
       }},
      {"overflow",
       [](communicator& c, void* m, cuda::stream_ref s) {
         all_reduce(c, m, m, (std::size_t{1} << 61U) + 1, int64, reduce_op::sum, s);
       }},
      {"overflow",
       [](communicator& c, void* m, cuda::stream_ref s) { all_gather(c, m, m, huge, uint8, s); }},
      {"overflow",
       [](communicator& c, void* m, cuda::stream_ref s) {
         reduce_scatter(c, m, m, huge, float64, reduce_op::sum, s);
       }},
      {"wrap around",
       [=](communicator& c, void* m, cuda::stream_ref s) {
         broadcast(c, m, end_of_memory, 128, uint8, rank_id{0}, s);
       }},
      {"not aligned",
       [=](communicator& c, void* m, cuda::stream_ref s) {
         all_reduce(c, shifted(m, 2), m, 4, float32, reduce_op::sum, s);
       }},
      {"overlap",
       [=](communicator& c, void* m, cuda::stream_ref s) {
         all_reduce(c, m, shifted(m, 4), 4, float32, reduce_op::sum, s);
       }},
      {"overlap",
       [=](communicator& c, void* m, cuda::stream_ref s) {
         all_gather(c, shifted(m, 4), m, 4, float32, s);
       }},
      {"overlap",
       [=](communicator& c, void* m, cuda::stream_ref s) {
         reduce_scatter(c, m, shifted(m, 4), 4, float32, reduce_op::sum, s);
       }},
      {"overlap",
       [](communicator& c, void* m, cuda::stream_ref s) { all_to_all(c, m, m, 4, float32, s); }},
      {"root 2 is outside the world",
       [](communicator& c, void* m, cuda::stream_ref s) {
         broadcast(c, m, m, 4, float32, rank_id{2}, s);
       }},
      {"peer -1 is outside the world",
       [](communicator& c, void* m, cuda::stream_ref s) {
         send(c, m, 4, float32, rank_id{-1}, s);
       }},
      {"needs a group",
       [](communicator& c, void* m, cuda::stream_ref s) {
         recv(c, m, 4, float32, rank_id{c.rank()}, s);
       }},
      {"opaque bytes can be moved, not reduced",
       [](communicator& c, void* m, cuda::stream_ref s) {
         all_reduce(c, m, m, 4, bytes, reduce_op::sum, s);
       }},
      {"data type 77",
       [](communicator& c, void* m, cuda::stream_ref s) {
         all_reduce(c, m, m, 4, static_cast<data_type>(77), reduce_op::sum, s);
       }},
      {"reduce operation 9",
       [](communicator& c, void* m, cuda::stream_ref s) {
         all_reduce(c, m, m, 4, float32, static_cast<reduce_op>(9), s);
       }},
      {"deadline must be longer than zero",
       [](communicator& c, void* m, cuda::stream_ref s) {
         all_reduce(c, m, m, 4, float32, reduce_op::sum, s, {.deadline = 0ns});
       }},
      {"spans of 3 and 4 elements",
       [](communicator& c, void* m, cuda::stream_ref s) {
         auto* f = static_cast<float*>(m);
         all_reduce(c, device_span<const float>{f, 3}, device_span<float>{f, 4}, reduce_op::sum, s);
       }},
      {"the layout has 1 entries for 2 ranks",
       [](communicator& c, void* m, cuda::stream_ref s) {
         const std::array<std::size_t, 1> one{1};
         const std::array<std::size_t, 2> two{1, 1};
         all_to_all(c, m, m, {two, one, two, two}, float32, s);
       }},
      {"overflow",
       [](communicator& c, void* m, cuda::stream_ref s) {
         const std::array<std::size_t, 2> counts{1, 1};
         const std::array<std::size_t, 2> far{0, huge};
         all_to_all(c, m, m, {counts, far, counts, far}, float32, s);
       }},
      {"must be longer than zero",
       [](communicator& c, void*, cuda::stream_ref) { barrier(c, 0ns); }},
  };
}

TEST(arguments, wrong_ones_are_refused_and_change_nothing) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    element_buffer memory{data_type::float64, 64};
    for (const refusal& each : refusals()) {
      const std::uint64_t before = comm.sequence();
      expect_error(errc::invalid_argument, each.words, [&] { each.call(comm, memory.data(), s); });
      expect_unchanged(comm, before);
    }
  });
}

TEST(arguments, errors_name_operation_rank_count_and_type) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    const error thrown = error_of(
        [&] { all_reduce(comm, nullptr, nullptr, 4, data_type::bfloat16, reduce_op::sum, s); });
    EXPECT_EQ(thrown.context().operation, "all_reduce");
    EXPECT_EQ(thrown.context().rank, comm.rank());
    EXPECT_EQ(thrown.context().world_size, 2);
    EXPECT_EQ(thrown.context().count_elements, 4U);
    EXPECT_EQ(thrown.context().dtype, data_type::bfloat16);
    EXPECT_EQ(thrown.recovery(), recovery::fix_call);
  });
}

TEST(arguments, empty_collectives_take_null_and_no_number) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    all_reduce(comm, nullptr, nullptr, 0, data_type::float32, reduce_op::sum, s);
    all_gather(comm, nullptr, nullptr, 0, data_type::float32, s);
    reduce_scatter(comm, nullptr, nullptr, 0, data_type::float32, reduce_op::sum, s);
    broadcast(comm, nullptr, nullptr, 0, data_type::float32, rank_id{1}, s);
    all_to_all(comm, nullptr, nullptr, 0, data_type::float32, s);
    expect_unchanged(comm, 0);
  });
}

TEST(arguments, empty_messages_are_real_and_pair_up) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    const rank_id peer{1 - comm.rank()};
    std::int32_t value = comm.rank() == 0 ? 42 : 0;
    if (comm.rank() == 0) {
      send(comm, nullptr, 0, data_type::int32, peer, s);
      send(comm, &value, 1, data_type::int32, peer, s);
    } else {
      recv(comm, nullptr, 0, data_type::int32, peer, s);
      recv(comm, &value, 1, data_type::int32, peer, s);
    }
    ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
    EXPECT_EQ(value, 42);
    EXPECT_EQ(comm.sequence(), 2U);
  });
}

TEST(arguments, ranges_that_only_touch_are_apart) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    element_buffer memory{data_type::float32, 12};
    memory.fill([&](std::size_t) { return comm.rank() + 1; });
    all_reduce(comm, memory.at(0), memory.at(4), 4, data_type::float32, reduce_op::sum, s);
    all_gather(comm, memory.at(0), memory.at(4), 4, data_type::float32, s);
    ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
    EXPECT_EQ(memory.get(4), 1);
    EXPECT_EQ(memory.get(8), 2);
  });
}

// One rank aligned and the other not; every offset and tail.
TEST(arguments, any_start_that_is_aligned_to_its_element_gives_the_same_bits) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    for (const data_type dtype : {data_type::uint8, data_type::bfloat16, data_type::float32}) {
      for (std::size_t offset = 0; offset < 16; ++offset) {
        const std::size_t count = 4 * offset + 5;
        element_buffer out{dtype, count, comm.rank() == 0 ? 0 : offset};
        out.fill([&](std::size_t i) { return static_cast<double>((i + offset) % 7); });
        all_reduce(comm, out.data(), out.data(), count, dtype, reduce_op::sum, s);
        ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
        EXPECT_EQ(out.first_difference(
                      [&](std::size_t i) { return static_cast<double>(2 * ((i + offset) % 7)); }),
                  count);
        EXPECT_TRUE(out.is_guarded());
      }
    }
  });
}

TEST(arguments, a_stream_of_another_device_is_refused) {
  in_world(2, [](communicator& comm) {
    const cuda::device other = cuda::device::open(comm.loaded_runtime().driver(), 5);
    const cuda::stream foreign = other.create_stream();
    std::int32_t one = 1;
    expect_error(errc::invalid_argument, "another device", [&] {
      all_reduce(comm, &one, &one, 1, data_type::int32, reduce_op::sum, foreign);
    });
    expect_unchanged(comm, 0);
  });
}

TEST(arguments, the_current_device_of_the_thread_never_changes) {
  in_world(2, [](communicator& comm) {
    const cuda::driver& driver = comm.loaded_runtime().driver();
    const auto current = [&] {
      cuda::abi::context context = nullptr;
      driver.check(driver.table().cuCtxGetCurrent(&context), "cuCtxGetCurrent");
      return context;
    };
    const cuda::device other = cuda::device::open(driver, 6);
    const cuda::device_scope scope{other};
    const cuda::stream s = comm.device().create_stream();
    std::int32_t one = 1;
    all_reduce(comm, &one, &one, 1, data_type::int32, reduce_op::sum, s);
    EXPECT_EQ(current(), other.context());
    static_cast<void>(comm.wait(s, 10s));
    EXPECT_EQ(current(), other.context());
    static_cast<void>(error_of(
        [&] { all_reduce(comm, nullptr, nullptr, 1, data_type::int32, reduce_op::sum, s); }));
    barrier(comm, 10s);
    comm.close(10s);
    EXPECT_EQ(current(), other.context());
  });
}

TEST(arguments, a_thread_that_never_chose_a_device_uses_the_communicators) {
  in_world(2, [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    std::int32_t one = 1;
    std::thread fresh{[&] {
      all_reduce(comm, &one, &one, 1, data_type::int32, reduce_op::sum, s);
      EXPECT_EQ(comm.wait(s, 10s), wait_result::done);
    }};
    fresh.join();
    EXPECT_EQ(one, 2);
  });
}

}  // namespace
}  // namespace spark_comm
