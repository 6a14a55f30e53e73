// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"
#include "support/scripted_tables.hpp"

#include <spark_comm/collectives/detail/check.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/registry.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

namespace spark_comm::detail {
namespace {

using testing::expect_error;

constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();

class check : public ::testing::Test {
 protected:
  [[nodiscard]] argument_check of(std::size_t count, data_type dtype = data_type::float32) const {
    return argument_check{*core_, operation_kind::all_reduce, count, dtype};
  }

  template <typename Call>
  static void refused(const char* words, Call call) {
    expect_error(errc::invalid_argument, words, call);
  }

  testing::scripted_tables tables_;
  std::shared_ptr<communicator_core> core_ = std::make_shared<communicator_core>(
      runtime::from_parts(runtime_kind::host, tables_.cuda.driver(), tables_.nccl.library()),
      world{.address = "127.0.0.1:1", .rank = 1, .world_size = 4},
      join_options{.supervise = {}},
      std::make_shared<registry>());
  alignas(16) std::array<std::byte, 64> memory_{};
};

TEST_F(check, bytes_are_counted_without_overflow) {
  EXPECT_EQ(of(0).bytes(), 0U);
  EXPECT_EQ(of(3).bytes(), 12U);
  EXPECT_EQ(of(3, data_type::float64).bytes(4), 96U);
  EXPECT_EQ(of(huge, data_type::uint8).bytes(), huge);
  refused("overflow", [&] { return of(huge / 4 + 1).bytes(); });
  refused("overflow", [&] { return of(huge, data_type::uint8).bytes(2); });
  refused("overflow", [&] { return of((std::size_t{1} << 61U) + 1, data_type::int64).bytes(); });
  refused("overflow", [&] { return of(std::size_t{1} << 62U, data_type::uint8).bytes(4); });
}

TEST_F(check, buffers_are_there_aligned_and_inside_the_address_space) {
  of(4).require_buffer("in", nullptr, 0);
  of(4).require_buffer("in", memory_.data(), 16);
  of(4).require_buffer("in", memory_.data() + 4, 16);
  refused("in is null", [&] { of(4).require_buffer("in", nullptr, 16); });
  for (const std::size_t shift : {1U, 2U, 3U, 5U}) {
    refused("not aligned", [&] { of(4).require_buffer("out", memory_.data() + shift, 16); });
  }
  of(4, data_type::uint8).require_buffer("in", memory_.data() + 3, 4);
  const auto* const last = reinterpret_cast<void*>(std::numeric_limits<std::uintptr_t>::max() - 7);
  refused("wrap around", [&] { of(4).require_buffer("in", last, 16); });
}

TEST_F(check, ranges_may_touch_but_not_share_a_byte) {
  const std::byte* const m = memory_.data();
  of(4).require_disjoint(m, 16, m + 16, 16);
  of(4).require_disjoint(m + 16, 16, m, 16);
  of(4).require_disjoint(m, 0, m, 16);
  for (const std::ptrdiff_t shift : {-15, -1, 0, 1, 15}) {
    refused("overlap", [&] { of(4).require_disjoint(m + 20, 16, m + 20 + shift, 16); });
  }
  refused("overlap", [&] { of(4).require_disjoint(m, 64, m + 30, 1); });
}

TEST_F(check, ranks_are_those_of_the_world) {
  of(1).require_rank("root", 0);
  of(1).require_rank("root", 3);
  refused("root 4 is outside the world: 0 to 3", [&] { of(1).require_rank("root", 4); });
  refused("peer -1", [&] { of(1).require_rank("peer", -1); });
}

TEST_F(check, reductions_are_of_known_kinds_and_of_numbers) {
  for (const reduce_op op : all_reduce_ops) {
    of(1).require_reducible(op);
    of(1, data_type::float8_e4m3).require_reducible(op);  // the host runtime's own arithmetic
    refused("opaque bytes", [&] { of(1, data_type::bytes).require_reducible(op); });
  }
  refused("reduce operation 5", [&] { of(1).require_reducible(static_cast<reduce_op>(5)); });
  refused("data type 200", [&] { return of(1, static_cast<data_type>(200)).bytes(); });
}

TEST_F(check, fp8_is_reduced_only_where_hardware_and_library_do) {
  const auto reduces = [&](int major, int version) {
    tables_.nccl.version = version;
    SCRIPTED_CALL(cuda::api, cuDeviceGetAttribute)::handle(tables_.script,
                                                           [major](int* value, int, int) {
                                                             *value = major;
                                                             return 0;
                                                           });
    const communicator_core core{
        runtime::from_parts(runtime_kind::nvidia, tables_.cuda.driver(), tables_.nccl.library()),
        world{.address = {}, .rank = 0, .world_size = 1},
        join_options{.supervise = {}},
        std::make_shared<registry>()};
    return core.can_reduce_fp8();
  };
  EXPECT_TRUE(reduces(9, 22809));
  EXPECT_FALSE(reduces(8, 22809));
  EXPECT_FALSE(reduces(9, 22304));
}

TEST_F(check, every_error_says_who_and_what) {
  const error thrown = testing::error_of([&] { of(4, data_type::bfloat16).fail("because"); });
  EXPECT_EQ(thrown.message(), "because");
  EXPECT_EQ(thrown.context().operation, "all_reduce");
  EXPECT_EQ(thrown.context().communicator, "world");
  EXPECT_EQ(thrown.context().rank, 1);
  EXPECT_EQ(thrown.context().world_size, 4);
  EXPECT_EQ(thrown.context().count_elements, 4U);
  EXPECT_EQ(thrown.context().dtype, data_type::bfloat16);
}

TEST_F(check, one_byte_types_travel_as_uint8) {
  for (const data_type dtype : all_data_types) {
    EXPECT_EQ(moved_type(dtype),
              size_of(dtype) == 1 ? static_cast<int>(data_type::uint8) : static_cast<int>(dtype));
  }
}

TEST_F(check, blocks_follow_each_other_and_null_stays_null) {
  EXPECT_EQ(block_at(nullptr, 16, 3), nullptr);
  EXPECT_EQ(block_at(memory_.data(), 16, 0), memory_.data());
  EXPECT_EQ(block_at(memory_.data(), 16, 3), memory_.data() + 48);
}

}  // namespace
}  // namespace spark_comm::detail
