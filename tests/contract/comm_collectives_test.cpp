// SPDX-License-Identifier: AGPL-3.0-only
// Every collective, in and out of place, over data types, counts and worlds: exact to the bit.
#include "support/elements.hpp"
#include "support/world.hpp"

#include <spark_comm/spark_comm.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using test_support::element_buffer;
using test_support::in_world;

// Small enough that sums and products over four ranks are exact in fp8 as well.
double value_of(int rank, std::size_t element) {
  return static_cast<double>((element * 7 + static_cast<std::size_t>(rank) * 5 + element / 3) % 3);
}

double reduced(reduce_op op, int world, std::size_t element, data_type dtype) {
  double total = value_of(0, element);
  for (int rank = 1; rank < world; ++rank) {
    const double next = value_of(rank, element);
    switch (op) {
      case reduce_op::sum:
      case reduce_op::avg:  total += next; break;
      case reduce_op::prod: total *= next; break;
      case reduce_op::max:  total = std::max(total, next); break;
      case reduce_op::min:  total = std::min(total, next); break;
    }
  }
  if (op == reduce_op::avg) {
    total /= world;
    return is_integer(dtype) ? static_cast<double>(static_cast<int>(total)) : total;
  }
  return total;
}

// Odd averages are not exact in floating point; the numerics have a test of their own.
bool is_exact(reduce_op op, int world, data_type dtype) {
  return op != reduce_op::avg || is_integer(dtype) || world != 3;
}

struct shape {
  data_type dtype;
  std::size_t count;
  std::size_t offset;
};

std::vector<shape> shapes() {
  std::vector<shape> all;
  for (const data_type dtype : all_data_types) {
    all.push_back({dtype, 0, 0});
    all.push_back({dtype, 1, 1});
    all.push_back({dtype, 37, 3});
  }
  for (const data_type dtype : {data_type::bfloat16, data_type::float32, data_type::uint8}) {
    all.push_back({dtype, 4096, 0});
    all.push_back({dtype, 70001, 1});
  }
  return all;
}

std::string text_of(const shape& what) {
  return std::string{name_of(what.dtype)} + " x " + std::to_string(what.count);
}

void expect(const element_buffer& got,
            const std::function<double(std::size_t)>& expected,
            const std::string& what) {
  const std::size_t wrong = got.first_difference(expected);
  EXPECT_EQ(wrong, got.count()) << what << ": element " << wrong << " is "
                                << (wrong < got.count() ? got.get(wrong) : 0) << ", not "
                                << (wrong < got.count() ? expected(wrong) : 0);
  EXPECT_TRUE(got.is_guarded()) << what;
}

void finish(communicator& comm, const cuda::stream& s) {
  ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
}

class collectives : public ::testing::TestWithParam<int> {};

TEST_P(collectives, all_reduce_is_exact) {
  in_world(GetParam(), [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    for (const shape& what : shapes()) {
      for (const reduce_op op : all_reduce_ops) {
        if (!can_reduce(what.dtype) || !is_exact(op, comm.world_size(), what.dtype)) {
          continue;
        }
        element_buffer in{what.dtype, what.count, what.offset};
        element_buffer out{what.dtype, what.count, what.offset};
        const auto mine = [&](std::size_t i) { return value_of(comm.rank(), i); };
        const auto all = [&](std::size_t i) {
          return reduced(op, comm.world_size(), i, what.dtype);
        };
        in.fill(mine);
        all_reduce(comm, in.data(), out.data(), what.count, what.dtype, op, s);
        finish(comm, s);
        expect(out, all, text_of(what) + " out of place");
        expect(in, mine, text_of(what) + " input");
        all_reduce(comm, in.data(), in.data(), what.count, what.dtype, op, s);
        finish(comm, s);
        expect(in, all, text_of(what) + " in place");
      }
    }
  });
}

TEST_P(collectives, broadcast_and_reduce_are_exact_for_every_root) {
  in_world(GetParam(), [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    for (const shape& what : shapes()) {
      for (int root = 0; root < comm.world_size(); ++root) {
        const auto mine = [&](std::size_t i) { return value_of(comm.rank(), i); };
        const auto roots = [&](std::size_t i) { return value_of(root, i); };
        element_buffer in{what.dtype, what.count, what.offset};
        element_buffer out{what.dtype, what.count, what.offset};
        in.fill(mine);
        out.fill([](std::size_t) { return 2; });
        broadcast(comm, in.data(), out.data(), what.count, what.dtype, rank_id{root}, s);
        finish(comm, s);
        expect(out, roots, text_of(what) + " broadcast");
        if (can_reduce(what.dtype)) {
          element_buffer total{what.dtype, what.count, what.offset};
          const bool is_root = comm.rank() == root;
          reduce(comm,
                 in.data(),
                 is_root ? total.data() : nullptr,
                 what.count,
                 what.dtype,
                 reduce_op::sum,
                 rank_id{root},
                 s);
          finish(comm, s);
          if (is_root) {
            expect(
                total,
                [&](std::size_t i) {
                  return reduced(reduce_op::sum, comm.world_size(), i, what.dtype);
                },
                text_of(what) + " reduce");
          }
        }
        broadcast(comm, in.data(), in.data(), what.count, what.dtype, rank_id{root}, s);
        finish(comm, s);
        expect(in, roots, text_of(what) + " broadcast in place");
      }
    }
  });
}

TEST_P(collectives, all_gather_is_exact_in_and_out_of_place) {
  in_world(GetParam(), [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    const auto world = static_cast<std::size_t>(comm.world_size());
    for (const shape& what : shapes()) {
      const auto mine = [&](std::size_t i) { return value_of(comm.rank(), i); };
      const auto all = [&](std::size_t i) {
        return value_of(static_cast<int>(i / what.count), i % what.count);
      };
      element_buffer in{what.dtype, what.count, what.offset};
      element_buffer out{what.dtype, what.count * world, what.offset};
      element_buffer placed{what.dtype, what.count * world, what.offset};
      in.fill(mine);
      all_gather(comm, in.data(), out.data(), what.count, what.dtype, s);
      const std::size_t own = what.count * static_cast<std::size_t>(comm.rank());
      for (std::size_t i = 0; i < what.count; ++i) {
        placed.put(own + i, mine(i));
      }
      all_gather(comm, placed.at(own), placed.data(), what.count, what.dtype, s);
      finish(comm, s);
      expect(out, all, text_of(what) + " out of place");
      expect(placed, all, text_of(what) + " in place");
    }
  });
}

TEST_P(collectives, reduce_scatter_is_exact_in_and_out_of_place) {
  in_world(GetParam(), [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    const auto world = static_cast<std::size_t>(comm.world_size());
    for (const shape& what : shapes()) {
      if (!can_reduce(what.dtype)) {
        continue;
      }
      const std::size_t own = what.count * static_cast<std::size_t>(comm.rank());
      const auto share = [&](std::size_t i) {
        return reduced(reduce_op::sum, comm.world_size(), own + i, what.dtype);
      };
      element_buffer in{what.dtype, what.count * world, what.offset};
      element_buffer out{what.dtype, what.count, what.offset};
      in.fill([&](std::size_t i) { return value_of(comm.rank(), i); });
      reduce_scatter(comm, in.data(), out.data(), what.count, what.dtype, reduce_op::sum, s);
      finish(comm, s);
      expect(out, share, text_of(what) + " out of place");
      reduce_scatter(comm, in.data(), in.at(own), what.count, what.dtype, reduce_op::sum, s);
      finish(comm, s);
      EXPECT_TRUE(in.is_guarded());
      for (std::size_t i = 0; i < what.count; ++i) {
        ASSERT_EQ(in.get(own + i), share(i)) << text_of(what) << " in place, element " << i;
      }
    }
  });
}

TEST_P(collectives, all_to_all_exchanges_every_block) {
  in_world(GetParam(), [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    const auto world = static_cast<std::size_t>(comm.world_size());
    for (const shape& what : shapes()) {
      element_buffer in{what.dtype, what.count * world, what.offset};
      element_buffer out{what.dtype, what.count * world, what.offset};
      in.fill([&](std::size_t i) { return value_of(comm.rank(), i); });
      all_to_all(comm, in.data(), out.data(), what.count, what.dtype, s);
      finish(comm, s);
      const std::size_t own = what.count * static_cast<std::size_t>(comm.rank());
      expect(
          out,
          [&](std::size_t i) {
            return value_of(static_cast<int>(i / what.count), own + i % what.count);
          },
          text_of(what));
    }
  });
}

TEST_P(collectives, all_to_all_with_counts_moves_uneven_and_empty_blocks) {
  in_world(GetParam(), [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    const auto world = static_cast<std::size_t>(comm.world_size());
    // Rank a sends rank b (a * 3 + b * 2) % 5 elements: some blocks are empty.
    const auto count = [](std::size_t from, std::size_t to) { return (from * 3 + to * 2) % 5; };
    const auto me = static_cast<std::size_t>(comm.rank());
    std::vector<std::size_t> send_counts(world);
    std::vector<std::size_t> recv_counts(world);
    std::vector<std::size_t> send_offsets(world);
    std::vector<std::size_t> recv_offsets(world);
    for (std::size_t peer = 0; peer < world; ++peer) {
      send_counts[peer] = count(me, peer);
      recv_counts[peer] = count(peer, me);
      send_offsets[peer] = peer * 5;
      recv_offsets[peer] = peer * 5;
    }
    element_buffer in{data_type::float32, 5 * world};
    element_buffer out{data_type::float32, 5 * world};
    in.fill([&](std::size_t i) { return static_cast<double>(100 * me + i); });
    out.fill([](std::size_t) { return -1; });
    all_to_all(comm,
               in.data(),
               out.data(),
               {send_counts, send_offsets, recv_counts, recv_offsets},
               data_type::float32,
               s);
    finish(comm, s);
    expect(
        out,
        [&](std::size_t i) {
          const std::size_t peer = i / 5;
          return i % 5 < count(peer, me) ? static_cast<double>(100 * peer + me * 5 + i % 5) : -1.0;
        },
        "uneven");
  });
}

TEST_P(collectives, send_and_recv_pass_a_ring) {
  in_world(GetParam(), [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    const int next = (comm.rank() + 1) % comm.world_size();
    const int before = (comm.rank() + comm.world_size() - 1) % comm.world_size();
    for (const shape& what : shapes()) {
      element_buffer in{what.dtype, what.count, what.offset};
      element_buffer out{what.dtype, what.count, what.offset};
      in.fill([&](std::size_t i) { return value_of(comm.rank(), i); });
      {
        group_scope group{comm};
        send(comm, in.data(), what.count, what.dtype, rank_id{next}, s);
        recv(comm, out.data(), what.count, what.dtype, rank_id{before}, s);
        group.commit();
      }
      finish(comm, s);
      expect(out, [&](std::size_t i) { return value_of(before, i); }, text_of(what));
    }
  });
}

TEST_P(collectives, typed_overloads_do_the_same) {
  in_world(GetParam(), [](communicator& comm) {
    const cuda::stream s = comm.device().create_stream();
    const auto world = static_cast<std::size_t>(comm.world_size());
    const auto rank = static_cast<std::size_t>(comm.rank());
    std::vector<float> in(6 * world, static_cast<float>(rank + 1));
    std::vector<float> out(6 * world);
    const device_span<const float> from{in.data(), in.size()};
    const device_span<float> to{out.data(), out.size()};
    const auto total = static_cast<float>(world * (world + 1) / 2);

    all_reduce(comm, from, to, reduce_op::sum, s);
    finish(comm, s);
    EXPECT_EQ(out, std::vector<float>(6 * world, total));
    all_reduce(comm, device_span<float>{out.data(), 1}, reduce_op::max, s);
    broadcast(comm, from, to, rank_id{0}, s);
    broadcast(comm, device_span<float>{in.data(), 1}, rank_id{0}, s);
    reduce(comm, from, comm.rank() == 0 ? to : device_span<float>{}, reduce_op::min, rank_id{0}, s);
    all_gather(comm, device_span<const float>{in.data(), 6}, to, s);
    finish(comm, s);
    EXPECT_EQ(out.back(), static_cast<float>(world));
    reduce_scatter(comm, from, device_span<float>{out.data(), 6}, reduce_op::sum, s);
    all_to_all(comm, from, to, s);
    finish(comm, s);
    if (world > 1) {
      const rank_id peer{comm.rank() ^ 1};
      if (comm.rank() == 0) {
        send(comm, from, peer, s);
      } else if (comm.rank() == 1) {
        recv(comm, to, peer, s);
      }
      finish(comm, s);
    }
    barrier(comm, 10s);
  });
}

INSTANTIATE_TEST_SUITE_P(world, collectives, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace spark_comm
