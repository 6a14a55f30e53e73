// SPDX-License-Identifier: AGPL-3.0-only
// A communicator of one through the C interface: its life, and what every operation refuses. Worlds
// of several ranks are in the contract tests.
#include "support/c_handles.hpp"

#include <spark_comm/spark_comm.h>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace spark_comm {
namespace {

using testing::c_communicator;
using testing::c_error;
using testing::c_runtime;
using testing::c_stream;
using testing::expect_c_error;
using testing::expect_ok;
using testing::load_host;
using testing::made_by;

constexpr std::int64_t second = 1'000'000'000;

spark_comm_world alone() {
  spark_comm_world place{};
  place.struct_size = sizeof place;
  place.world_size = 1;
  return place;
}

class c_communicator_of_one : public ::testing::Test {
 protected:
  void TearDown() override {
    expect_ok([this](auto** failure) {
      return spark_comm_communicator_close(comm(), 5 * second, failure);
    });
  }

  static c_communicator join(const c_runtime& loaded) {
    const spark_comm_world place = alone();
    return made_by<c_communicator>([&](auto** made, auto** failure) {
      return spark_comm_communicator_join(loaded.get(), &place, nullptr, made, failure);
    });
  }

  spark_comm_communicator* comm() const { return comm_.get(); }

  spark_comm_native_stream stream() const { return spark_comm_stream_native(stream_.get()); }

  void drain() const {
    spark_comm_progress progress = SPARK_COMM_PENDING;
    expect_ok([&](auto** failure) {
      return spark_comm_communicator_wait(comm(), stream(), 5 * second, &progress, failure);
    });
    EXPECT_EQ(progress, SPARK_COMM_DONE);
  }

  c_runtime loaded_ = load_host();
  c_communicator comm_ = join(loaded_);
  c_stream stream_ = made_by<c_stream>([this](auto** made, auto** failure) {
    return spark_comm_stream_create(spark_comm_communicator_device(comm()), made, failure);
  });
  std::array<float, 4> in_{1, 2, 3, 4};
  std::array<float, 4> out_{};
};

TEST_F(c_communicator_of_one, knows_its_place) {
  EXPECT_EQ(spark_comm_communicator_rank(comm()), 0);
  EXPECT_EQ(spark_comm_communicator_world_size(comm()), 1);
  EXPECT_STREQ(spark_comm_communicator_name(comm()), "world");
  EXPECT_EQ(spark_comm_communicator_state(comm()), SPARK_COMM_STATE_READY);
  EXPECT_EQ(spark_comm_communicator_sequence(comm()), 0U);
  EXPECT_EQ(spark_comm_communicator_generation(comm()), 1U);
  EXPECT_EQ(spark_comm_communicator_last_error(comm()), nullptr);
}

TEST_F(c_communicator_of_one, says_which_way_an_operation_goes) {
  spark_comm_path_capabilities agreed{};
  agreed.struct_size = sizeof agreed;
  expect_ok(
      [&](auto** failure) { return spark_comm_communicator_paths(comm(), &agreed, failure); });
  EXPECT_EQ(agreed.world_size, 1);
  spark_comm_path path = 0;
  const auto ask = [&](int operation, int dtype, int op) {
    return [=, this, &path](auto** failure) {
      return spark_comm_communicator_path_of(comm(), operation, dtype, op, 4096, &path, failure);
    };
  };
  expect_ok(ask(SPARK_COMM_OPERATION_ALL_REDUCE, SPARK_COMM_BFLOAT16, SPARK_COMM_SUM));
  EXPECT_EQ(path, SPARK_COMM_PATH_LOCAL);
  expect_c_error(
      SPARK_COMM_INVALID_ARGUMENT, "operation 77", ask(77, SPARK_COMM_BFLOAT16, SPARK_COMM_SUM));
}

TEST_F(c_communicator_of_one, refuses_numbers_that_are_none_of_its_own) {
  for (const int wrong : {-1, 12, 256, 262}) {
    const std::string number = std::to_string(wrong);
    expect_c_error(SPARK_COMM_INVALID_ARGUMENT, "data type " + number, [&](auto** failure) {
      return spark_comm_broadcast(
          comm(), in_.data(), out_.data(), 4, wrong, 0, stream(), nullptr, failure);
    });
    expect_c_error(SPARK_COMM_INVALID_ARGUMENT, "reduce operation " + number, [&](auto** failure) {
      return spark_comm_all_reduce(comm(),
                                   in_.data(),
                                   out_.data(),
                                   4,
                                   SPARK_COMM_FLOAT32,
                                   wrong,
                                   stream(),
                                   nullptr,
                                   failure);
    });
  }
  EXPECT_EQ(spark_comm_communicator_sequence(comm()), 0U);
  EXPECT_EQ(spark_comm_communicator_state(comm()), SPARK_COMM_STATE_READY);
}

TEST_F(c_communicator_of_one, an_operation_refused_in_a_group_stops_the_whole_group) {
  spark_comm_group* group = nullptr;
  expect_ok([&](auto** failure) { return spark_comm_group_begin(comm(), &group, failure); });
  // Nobody looks at the answer of the first.
  EXPECT_EQ(
      spark_comm_all_gather(comm(), in_.data(), out_.data(), 4, 300, stream(), nullptr, nullptr),
      SPARK_COMM_INVALID_ARGUMENT);
  expect_ok([&](auto** failure) {
    return spark_comm_all_gather(
        comm(), in_.data(), out_.data(), 4, SPARK_COMM_FLOAT32, stream(), nullptr, failure);
  });
  spark_comm_error* failure = nullptr;
  EXPECT_EQ(spark_comm_group_commit(group, &failure), SPARK_COMM_INVALID_ARGUMENT);
  const c_error owned{failure};
  EXPECT_NE(std::string{spark_comm_error_line(failure)}.find("data type 300"), std::string::npos);
  EXPECT_EQ(out_.front(), 0);
}

TEST_F(c_communicator_of_one, a_dropped_group_launches_nothing_and_the_next_works) {
  spark_comm_group* group = nullptr;
  const auto gather = [&](auto** failure) {
    return spark_comm_all_gather(
        comm(), in_.data(), out_.data(), 4, SPARK_COMM_FLOAT32, stream(), nullptr, failure);
  };
  expect_ok([&](auto** failure) { return spark_comm_group_begin(comm(), &group, failure); });
  expect_ok(gather);
  spark_comm_group_drop(group);
  drain();
  EXPECT_EQ(out_.front(), 0);
  expect_ok([&](auto** failure) { return spark_comm_group_begin(comm(), &group, failure); });
  expect_ok(gather);
  expect_ok([&](auto** failure) { return spark_comm_group_commit(group, failure); });
  drain();
  EXPECT_EQ(out_, in_);
}

TEST_F(c_communicator_of_one, names_a_missing_argument) {
  expect_c_error(SPARK_COMM_INVALID_ARGUMENT, "the communicator is null", [&](auto** failure) {
    return spark_comm_send(
        nullptr, in_.data(), 4, SPARK_COMM_FLOAT32, 0, stream(), nullptr, failure);
  });
  expect_c_error(SPARK_COMM_INVALID_ARGUMENT, "layout is null", [&](auto** failure) {
    return spark_comm_all_to_all_counts(
        comm(), in_.data(), out_.data(), nullptr, SPARK_COMM_FLOAT32, stream(), nullptr, failure);
  });
  spark_comm_all_to_all_layout layout{};
  layout.struct_size = sizeof layout;
  expect_c_error(SPARK_COMM_INVALID_ARGUMENT, "send_counts is null", [&](auto** failure) {
    return spark_comm_all_to_all_counts(
        comm(), in_.data(), out_.data(), &layout, SPARK_COMM_FLOAT32, stream(), nullptr, failure);
  });
  expect_c_error(SPARK_COMM_INVALID_ARGUMENT, "what is null", [&](auto** failure) {
    return spark_comm_all_reduce_rms_norm(comm(), nullptr, stream(), nullptr, failure);
  });
  expect_c_error(SPARK_COMM_INVALID_ARGUMENT, "deadline_ns", [&](auto** failure) {
    const spark_comm_call_options options{.struct_size = sizeof options, .deadline_ns = -5};
    return spark_comm_recv(
        comm(), out_.data(), 4, SPARK_COMM_FLOAT32, 0, stream(), &options, failure);
  });
}

TEST_F(c_communicator_of_one, joins_without_waiting) {
  const spark_comm_world place = alone();
  const c_communicator second_one = made_by<c_communicator>([&](auto** made, auto** failure) {
    return spark_comm_communicator_start_join(loaded_.get(), &place, nullptr, made, failure);
  });
  spark_comm_progress progress = SPARK_COMM_PENDING;
  while (progress == SPARK_COMM_PENDING) {
    ASSERT_TRUE(expect_ok([&](auto** failure) {
      return spark_comm_communicator_poll_join(second_one.get(), &progress, failure);
    }));
  }
  EXPECT_EQ(spark_comm_communicator_state(second_one.get()), SPARK_COMM_STATE_READY);
  spark_comm_communicator_abort(second_one.get());
  EXPECT_EQ(spark_comm_communicator_state(second_one.get()), SPARK_COMM_STATE_ABORTED);
  expect_c_error(SPARK_COMM_ABORTED, "abort", [&](auto** failure) {
    return spark_comm_barrier(second_one.get(), second, failure);
  });
}

TEST_F(c_communicator_of_one, a_place_outside_the_world_is_refused) {
  spark_comm_world place = alone();
  place.rank = 1;
  spark_comm_communicator* none = nullptr;
  expect_c_error(SPARK_COMM_INVALID_ARGUMENT, "rank 1", [&](auto** failure) {
    return spark_comm_communicator_join(loaded_.get(), &place, nullptr, &none, failure);
  });
  EXPECT_EQ(none, nullptr);
}

}  // namespace
}  // namespace spark_comm
