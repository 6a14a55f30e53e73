// SPDX-License-Identifier: AGPL-3.0-only
// all_reduce on every path: the right sum, the same bits on all ranks, for every size, type and
// alignment; and the path that was meant.
#include "path_world.hpp"

#include <spark_comm/collectives/all_reduce.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/paths/path_of.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace spark_comm::test_support {
namespace {

using namespace std::chrono_literals;
using enum path_kind;

constexpr std::size_t limit_bytes = 4096;

path_options small_buffers(path_kind path) {
  path_options options;
  options.table = table_of(path);
  options.max_bytes = limit_bytes;
  options.max_streams = 1;
  return options;
}

path_kind way_of(const communicator& comm, std::size_t bytes) {
  return path_of(comm, {.bytes = bytes, .staging_bytes = bytes});
}

template <typename T>
void expect_sum(communicator& comm,
                const cuda::stream& s,
                path_kind way,
                std::size_t count,
                std::size_t offset) {
  const device_elements<T> in{comm, count, offset};
  const device_elements<T> out{comm, count, 0};
  in.write(message<T>(comm.rank(), count), s);
  all_reduce(comm, device_span<const T>{in.span()}, out.span(), reduce_op::sum, s);
  ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
  const std::vector<T> expected = sum_of_ranks<T>(comm.world_size(), count);
  const bool is_rounded_between = has_order_of_its_own(comm.world_size(), way);
  const auto is_sum = [&](const std::vector<T>& values) {
    return is_rounded_between ? are_near(values, expected, 0.5F) : same_bits(values, expected);
  };
  EXPECT_TRUE(is_sum(out.read(s))) << count << " elements, offset " << offset;
  EXPECT_TRUE(same_bits(in.read(s), message<T>(comm.rank(), count)));

  all_reduce(comm, in.span(), reduce_op::sum, s);
  ASSERT_EQ(comm.wait(s, 10s), wait_result::done);
  EXPECT_TRUE(is_sum(in.read(s))) << "in place, " << count << " elements";
}

template <typename T>
void expect_sums(communicator& comm, const cuda::stream& s, path_kind path) {
  constexpr std::size_t limit = limit_bytes / sizeof(T);
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{3}, std::size_t{257}, limit - 1, limit, limit + 1}) {
    const path_kind way = count > limit ? nccl : path;
    expect_sum<T>(comm, s, way, count, 0);
    // One rank's memory lies off the vectors' boundary, the others' do not.
    expect_sum<T>(comm, s, way, count, comm.rank() == 1 ? 1 : 0);
  }
}

struct path_case {
  path_kind path;
  int world_size;
};

std::string name_of_case(const testing::TestParamInfo<path_case>& info) {
  return std::string{name_of(info.param.path)} + "_" + std::to_string(info.param.world_size);
}

class all_reduce_on : public testing::TestWithParam<path_case> {};

INSTANTIATE_TEST_SUITE_P(paths,
                         all_reduce_on,
                         testing::Values(path_case{nccl, 2},
                                         path_case{exchange, 2},
                                         path_case{one_shot, 2},
                                         path_case{two_shot, 2},
                                         path_case{low_latency, 2},
                                         path_case{one_shot, 4},
                                         path_case{two_shot, 4},
                                         path_case{low_latency, 4}),
                         name_of_case);

TEST_P(all_reduce_on, sums_in_rank_order_with_equal_bits_for_every_size_type_and_alignment) {
  const auto [path, world_size] = GetParam();
  expect_all_succeeded(run_paths(world_size, small_buffers(path), [&](communicator& comm) {
    EXPECT_EQ(way_of(comm, limit_bytes), path);
    EXPECT_EQ(way_of(comm, limit_bytes + 1), nccl) << "larger than the buffers";
    const cuda::stream first = comm.device().create_stream();
    expect_sums<float>(comm, first, path);
    expect_sums<bfloat16>(comm, first, path);
    expect_sums<float16>(comm, first, path);
    const cuda::stream without_buffers = comm.device().create_stream();
    expect_sums<float16>(comm, without_buffers, nccl);
  }));
}

}  // namespace
}  // namespace spark_comm::test_support
