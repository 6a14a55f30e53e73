// SPDX-License-Identifier: AGPL-3.0-only
// All-reduces through segments, ranks as threads.
#include "segment_world.hpp"
#include "support/inline_driver.hpp"
#include "support/typed_buffer.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/add.hpp>
#include <spark_comm/kernels/one_shot.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm::kernels {
namespace {

using test::random_buffer;
using test::typed_buffer;
using enum exchange_protocol;

const cuda::stream_ref stream = cuda::stream_ref::default_stream();
constexpr exchange_protocol all_protocols[] = {low_latency, one_shot, two_shot};

segment_limits limits_for(int world) {
  return {.staging_bytes = 65536, .low_latency_bytes = 65536, .world = world};
}

// One input a rank, and their sum by the local kernel.
template <typename T>
struct rank_inputs {
  rank_inputs(int world, std::size_t count, std::uint32_t seed) : sum(count) {
    std::vector<const void*> addresses;
    for (int r = 0; r < world; ++r) {
      // Every rank has another alignment: none may matter.
      const std::size_t offset = static_cast<std::size_t>(r) % (16 / sizeof(T));
      inputs.push_back(random_buffer<T>(count, seed + static_cast<std::uint32_t>(r), offset));
      addresses.push_back(inputs.back().data());
    }
    add(test::inline_kernels(),
        {.dtype = data_type_of<T>, .inputs = addresses, .out = sum.data(), .count_elements = count},
        stream);
  }

  std::vector<typed_buffer<T>> inputs;
  typed_buffer<T> sum;
};

template <typename T>
class all_reduce_in_kernel : public testing::Test {};

using element_types = testing::Types<bfloat16, float16, float>;
TYPED_TEST_SUITE(all_reduce_in_kernel, element_types);

TYPED_TEST(all_reduce_in_kernel, gives_all_ranks_the_bits_of_the_local_sum) {
  using T = TypeParam;
  const kernel_module loaded = test::inline_kernels();
  for (const int world : {2, 3, 4, 8}) {
    const segment_world ranks{limits_for(world)};
    for (const std::size_t count : {1U, 2U, 3U, 5U, 7U, 8U, 67U, 4096U, 16384U}) {
      const rank_inputs<T> data{world, count, static_cast<std::uint32_t>(count)};
      for (const exchange_protocol protocol : all_protocols) {
        ranks.run([&](int rank) {
          const typed_buffer<T>& in = data.inputs[static_cast<std::size_t>(rank)];
          const typed_buffer<T> out{count, static_cast<std::size_t>(rank) % 2};
          all_reduce(loaded,
                     ranks.segments_of(rank),
                     protocol,
                     {data_type_of<T>, in.data(), out.data(), count},
                     stream);
          EXPECT_TRUE(out.equals(data.sum)) << world << ' ' << count << ' ' << rank;
          EXPECT_TRUE(out.is_guarded());
        });
      }
    }
  }
}

TYPED_TEST(all_reduce_in_kernel, works_in_place) {
  using T = TypeParam;
  const kernel_module loaded = test::inline_kernels();
  const segment_world ranks{limits_for(3)};
  for (const exchange_protocol protocol : all_protocols) {
    const rank_inputs<T> data{3, 999, 1};
    ranks.run([&](int rank) {
      const typed_buffer<T>& own = data.inputs[static_cast<std::size_t>(rank)];
      all_reduce(loaded,
                 ranks.segments_of(rank),
                 protocol,
                 {data_type_of<T>, own.data(), own.data(), 999},
                 stream);
      EXPECT_TRUE(own.equals(data.sum)) << rank;
    });
  }
}

TEST(all_reduce_in_kernel_bf16, rounds_once_whichever_rank_holds_the_large_value) {
  const kernel_module loaded = test::inline_kernels();
  const segment_world ranks{limits_for(4)};
  for (const exchange_protocol protocol : all_protocols) {
    for (int holder = 0; holder < 4; ++holder) {
      ranks.run([&](int rank) {
        const bfloat16 in = to_bfloat16(rank == holder ? 256.0F : 1.0F);
        bfloat16 out{};
        all_reduce(
            loaded, ranks.segments_of(rank), protocol, {data_type::bfloat16, &in, &out, 1}, stream);
        EXPECT_EQ(to_float(out), 260.0F) << holder << ' ' << rank;
      });
    }
  }
}

TEST(all_reduce_in_kernel_arguments, no_elements_launch_nothing) {
  const segment_world ranks{limits_for(2)};
  // Only one rank calls: were anything launched, it would wait for the other.
  all_reduce(test::inline_kernels(),
             ranks.segments_of(0),
             one_shot,
             {data_type::float32, nullptr, nullptr, 0},
             stream);
  EXPECT_EQ(ranks.header(0).rounds[0], 0U);
}

TEST(all_reduce_in_kernel_arguments, wrong_ones_are_refused_before_anything_is_launched) {
  const segment_world ranks{limits_for(2)};
  const auto in = random_buffer<float>(32768, 1);
  const typed_buffer<float> out{32768};
  using edit = std::function<void(peer_segments&, all_reduce_call&)>;
  const std::vector<std::pair<std::string, edit>> edits = {
      {"type", [](peer_segments&, all_reduce_call& c) { c.dtype = data_type::int8; }},
      {"null", [](peer_segments&, all_reduce_call& c) { c.in = nullptr; }},
      {"overlap", [&](peer_segments&, all_reduce_call& c) { c.out = in.data() + 1; }},
      {"large", [](peer_segments&, all_reduce_call& c) { c.count_elements = 16385; }},
      {"world", [](peer_segments& s, all_reduce_call&) { s.limits.world = 9; }},
      {"rank", [](peer_segments& s, all_reduce_call&) { s.rank = 2; }},
      {"segment", [](peer_segments& s, all_reduce_call&) { s.addresses[1] = nullptr; }},
      {"status", [](peer_segments& s, all_reduce_call&) { s.status = nullptr; }},
      {"abort word", [](peer_segments& s, all_reduce_call&) { s.abort_word = nullptr; }},
      {"limit", [](peer_segments& s, all_reduce_call&) { s.wait_limit = duration::zero(); }},
      {"staging", [](peer_segments& s, all_reduce_call&) { s.limits.staging_bytes += 16; }},
  };
  for (const auto& [name, change] : edits) {
    peer_segments segments = ranks.segments_of(0);
    all_reduce_call call{data_type::float32, in.data(), out.data(), 64};
    change(segments, call);
    try {
      all_reduce(test::inline_kernels(), segments, one_shot, call, stream);
      ADD_FAILURE() << name;
    } catch (const error& failure) {
      EXPECT_EQ(failure.kind(), errc::invalid_argument) << name;
    }
  }
  EXPECT_EQ(ranks.header(0).rounds[0], 0U);
  EXPECT_EQ(ranks.header(1).flags[0][0][0], 0U);
}

}  // namespace
}  // namespace spark_comm::kernels
