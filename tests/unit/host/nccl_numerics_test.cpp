// SPDX-License-Identifier: AGPL-3.0-only
// The arithmetic of reductions: wrapping, averages, one rounding over all ranks, NaN, and the same
// bits on every SIMD target. Single values through the exported calls, bulk through the kernels.
#include "nccl_rank.hpp"
#include "reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <host/reduce.hpp>
#include <hwy/highway.h>
#include <limits>
#include <random>
#include <vector>

namespace spark_comm::host_test {
namespace {

// Every rank contributes its value, and every rank must get `expected`.
template <typename T>
void expect_reduced(const std::vector<T>& by_rank, reduce_op op, T expected) {
  const auto ranks = static_cast<int>(by_rank.size());
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(ranks, [&](int rank) {
    joined_rank me{ranks, id, rank};
    const T mine = by_rank[static_cast<std::size_t>(rank)];
    const std::vector<T> in(5, mine);
    std::vector<T> out(5);
    EXPECT_EQ(me.all_reduce(in, out, op), 0);
    me.synchronize();
    // Five elements a rank, so that the count of elements is not the count of ranks.
    const std::vector<T> blocks(5 * by_rank.size(), mine);
    std::vector<T> scattered(5);
    EXPECT_EQ(ncclReduceScatter(blocks.data(),
                                scattered.data(),
                                5,
                                static_cast<int>(data_type_of<T>),
                                static_cast<int>(op),
                                me.comm(),
                                me.stream()),
              0);
    me.synchronize();
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(std::memcmp(&out[i], &expected, sizeof(T)), 0) << "element " << i;
      EXPECT_EQ(std::memcmp(&scattered[i], &expected, sizeof(T)), 0) << "scattered " << i;
    }
  }));
}

TEST(nccl_numerics, integers_wrap_and_averages_are_cut_towards_zero) {
  expect_reduced<std::int32_t>({-3, -4}, reduce_op::sum, -7);
  expect_reduced<std::int32_t>({-3, -4}, reduce_op::avg, -3);
  expect_reduced<std::int32_t>({-1, 0}, reduce_op::avg, 0);
  expect_reduced<std::int32_t>({7, 8, 9, 10}, reduce_op::sum, 34);
  expect_reduced<std::int32_t>({7, 8, 9, 10}, reduce_op::avg, 8);
  expect_reduced<std::int8_t>({127, 1}, reduce_op::sum, -128);
  expect_reduced<std::int8_t>({127, 1}, reduce_op::avg, -64);
  expect_reduced<std::uint8_t>({200, 100}, reduce_op::sum, 44);
  expect_reduced<std::uint8_t>({200, 100}, reduce_op::avg, 22);
}

TEST(nccl_numerics, bf16_sums_round_once_wherever_the_large_value_is) {
  for (std::size_t large = 0; large < 4; ++large) {
    std::vector<bfloat16> values(4, to_bfloat16(1.0F));
    values[large] = to_bfloat16(256.0F);
    expect_reduced(values, reduce_op::sum, to_bfloat16(260.0F));
  }
}

TEST(nccl_numerics, bf16_averages_do_not_overflow) {
  const bfloat16 huge{0x7f62};
  expect_reduced<bfloat16>({huge, huge}, reduce_op::sum, bfloat16{0x7f80});
  expect_reduced<bfloat16>({huge, huge}, reduce_op::avg, huge);
  const bfloat16 seven = to_bfloat16(7.0F);
  expect_reduced<bfloat16>({seven, seven, seven}, reduce_op::avg, seven);
}

TEST(nccl_numerics, a_number_beats_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_reduced<float>({nan, 2.0F}, reduce_op::max, 2.0F);
  expect_reduced<float>({2.0F, nan}, reduce_op::max, 2.0F);
  expect_reduced<float>({nan, 2.0F}, reduce_op::min, 2.0F);
  expect_reduced<float16>({to_float16(nan), to_float16(-1.0F)}, reduce_op::max, to_float16(-1.0F));
}

TEST(nccl_numerics, fp8_is_summed_as_a_float) {
  expect_reduced<float8_e4m3>({{0x38}, {0x38}}, reduce_op::sum, {0x40});  // 1 + 1 = 2
}

TEST(nccl_numerics, ranks_hold_the_same_bits_twice) {
  const nccl_id id = make_id();
  constexpr std::size_t count = 10000;
  const test_support::shared_value<std::array<std::array<std::uint16_t, count>, 4>> results;
  expect_all_succeeded(run_rank_processes(4, [&](int rank) {
    joined_rank me{4, id, rank};
    std::mt19937 random{static_cast<unsigned int>(rank)};
    std::vector<bfloat16> in(count);
    for (bfloat16& each : in) {
      each = to_bfloat16(static_cast<float>(random()) / 1e6F - 2000.0F);
    }
    std::vector<bfloat16> first(count);
    std::vector<bfloat16> second(count);
    EXPECT_EQ(me.all_reduce(in, first), 0);
    EXPECT_EQ(me.all_reduce(in, second), 0);
    me.synchronize();
    EXPECT_EQ(first, second);
    std::memcpy((*results)[static_cast<std::size_t>(rank)].data(), first.data(), count * 2);
  }));
  for (std::size_t rank = 1; rank < 4; ++rank) {
    EXPECT_EQ((*results)[0], (*results)[rank]);
  }
}

TEST(nccl_numerics, own_operations_scale_before_they_add) {
  const nccl_id id = make_id();
  expect_all_succeeded(run_rank_processes(2, [&](int rank) {
    joined_rank me{2, id, rank};
    float scale = 0.5F;
    int op = 0;
    EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, &scale, 7, 1, me.comm()), 0);
    EXPECT_GE(op, 5);
    const std::vector<float> in{4.0F, static_cast<float>(rank)};
    std::vector<float> out(2);
    EXPECT_EQ(ncclAllReduce(in.data(), out.data(), 2, 7, op, me.comm(), me.stream()), 0);
    EXPECT_EQ(ncclAllReduce(in.data(), out.data(), 2, 8, op, me.comm(), me.stream()), 4);
    me.synchronize();
    EXPECT_EQ(out, (std::vector<float>{4.0F, 0.5F}));
    EXPECT_EQ(ncclRedOpDestroy(op, me.comm()), 0);
    EXPECT_EQ(ncclRedOpDestroy(op, me.comm()), 4);
    EXPECT_EQ(ncclAllReduce(in.data(), out.data(), 2, 7, op, me.comm(), me.stream()), 4);
  }));
}

// Runs `check` once for each SIMD target of this machine.
void on_every_target(const std::function<void()>& check) {
  const std::int64_t all = hwy::SupportedTargets();
  for (int bit = 0; bit < 63; ++bit) {
    const std::int64_t target = std::int64_t{1} << bit;
    if ((all & target) != 0) {
      SCOPED_TRACE(hwy::TargetName(target));
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      check();
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// All encodings of the 8-bit formats with all others; of the 16-bit ones with random others.
template <typename T>
void expect_scalar_results(data_type dtype) {
  std::mt19937 random{7};  // NOLINT(cert-msc51-cpp): repeatable
  using bits = decltype(T::bits);
  const std::size_t encodings = std::size_t{1} << (8 * sizeof(T));
  const std::size_t others = sizeof(T) == 1 ? encodings : 1;
  std::vector<T> left;
  std::vector<T> right;
  for (std::size_t i = 0; i < encodings; ++i) {
    for (std::size_t k = 0; k < others; ++k) {
      left.push_back({static_cast<bits>(i)});
      right.push_back({static_cast<bits>(sizeof(T) == 1 ? k : random())});
    }
  }
  const std::array<const std::byte*, 2> inputs{reinterpret_cast<const std::byte*>(left.data()),
                                               reinterpret_cast<const std::byte*>(right.data())};
  for (const reduce_op op : all_reduce_ops) {
    std::vector<T> expected;
    for (std::size_t i = 0; i < left.size(); ++i) {
      expected.push_back(reduced<T>(op, {left[i], right[i]}));
    }
    on_every_target([&] {
      std::vector<T> out(left.size());
      host::reduce_elements(host::make_reduction(dtype, op, 2),
                            inputs.data(),
                            2,
                            reinterpret_cast<std::byte*>(out.data()),
                            out.size());
      const auto differ = std::ranges::mismatch(out, expected);
      if (differ.in1 != out.end()) {
        const auto i = static_cast<std::size_t>(differ.in1 - out.begin());
        ADD_FAILURE() << name_of(dtype) << ' ' << name_of(op) << " of " << left[i].bits << ", "
                      << right[i].bits << " is " << out[i].bits << ", not " << expected[i].bits;
      }
    });
  }
}

TEST(reduce_kernels, agree_with_the_scalar_conversions_on_every_target) {
  expect_scalar_results<float16>(data_type::float16);
  expect_scalar_results<bfloat16>(data_type::bfloat16);
  expect_scalar_results<float8_e4m3>(data_type::float8_e4m3);
  expect_scalar_results<float8_e5m2>(data_type::float8_e5m2);
}

TEST(reduce_kernels, give_the_same_bits_on_every_target_at_any_length) {
  std::mt19937 random{3};  // NOLINT(cert-msc51-cpp): repeatable
  std::vector<std::uint32_t> bits(3 * 301);
  for (std::uint32_t& each : bits) {
    each = static_cast<std::uint32_t>(random());  // NaN and infinities among them
  }
  for (const data_type dtype : all_data_types) {
    for (const reduce_op op : all_reduce_ops) {
      const std::size_t element = host::element_bytes(dtype);
      if (element == 0) {
        continue;
      }
      std::vector<std::byte> first;
      on_every_target([&] {
        const auto* memory = reinterpret_cast<const std::byte*>(bits.data());
        const std::array<const std::byte*, 3> inputs{
            memory + element, memory + 1200, memory + 2400 + element};
        std::vector<std::byte> out(1192);
        host::reduce_elements(
            host::make_reduction(dtype, op, 3), inputs.data(), 3, out.data(), 1192 / element - 1);
        if (first.empty()) {
          first = out;
        }
        EXPECT_EQ(out, first) << name_of(dtype) << ' ' << name_of(op);
      });
    }
  }
}

}  // namespace
}  // namespace spark_comm::host_test
