// SPDX-License-Identifier: AGPL-3.0-only
// all_reduce_rms_norm on every path: the bits of the plain kernel over all partials.
#include "path_world.hpp"

#include <spark_comm/collectives/all_reduce_rms_norm.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/kernels/module.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/rms_norm.hpp>
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

template <typename T>
struct norm_results {
  std::vector<T> residual;
  std::vector<T> out;
};

template <typename T>
class norm_case {
 public:
  norm_case(communicator& comm, std::size_t rows, std::size_t hidden)
      : comm_(comm),
        rows_(rows),
        hidden_(hidden),
        s_(comm.device().create_stream()),
        residual_(comm, rows * hidden),
        weight_(comm, hidden),
        out_(comm, rows * hidden) {
    weight_.write(message<T>(91, hidden), s_);
  }

  // One kernel over all ranks' partials, on this rank alone.
  norm_results<T> expected() {
    const auto kernels = kernels::kernel_module::load(
        comm_.device(), is_on_gpu() ? kernels::image_kind::gpu : kernels::image_kind::host);
    std::vector<device_elements<T>> partials;
    std::vector<const void*> addresses;
    for (int rank = 0; rank < comm_.world_size(); ++rank) {
      partials.emplace_back(comm_, rows_ * hidden_);
      partials.back().write(message<T>(rank, rows_ * hidden_), s_);
      addresses.push_back(partials.back().data());
    }
    residual_.write(message<T>(90, rows_ * hidden_), s_);
    kernels::rms_norm(kernels,
                      {.dtype = data_type_of<T>,
                       .partials = addresses,
                       .residual = residual_.data(),
                       .weight = weight_.data(),
                       .residual_out = residual_.data(),
                       .out = out_.data(),
                       .rows = rows_,
                       .hidden = hidden_},
                      s_);
    return {residual_.read(s_), out_.read(s_)};
  }

  norm_results<T> actual() {
    const device_elements<T> partial{comm_, rows_ * hidden_};
    partial.write(message<T>(comm_.rank(), rows_ * hidden_), s_);
    residual_.write(message<T>(90, rows_ * hidden_), s_);
    all_reduce_rms_norm(comm_,
                        {.dtype = data_type_of<T>,
                         .partial = partial.data(),
                         .residual = residual_.data(),
                         .weight = weight_.data(),
                         .out = out_.data(),
                         .rows = rows_,
                         .hidden = hidden_},
                        s_);
    EXPECT_EQ(comm_.wait(s_, 10s), wait_result::done);
    return {residual_.read(s_), out_.read(s_)};
  }

 private:
  communicator& comm_;
  std::size_t rows_;
  std::size_t hidden_;
  cuda::stream s_;
  device_elements<T> residual_;
  device_elements<T> weight_;
  device_elements<T> out_;
};

template <typename T>
void expect_norms(communicator& comm) {
  for (const auto& [rows, hidden] : {std::pair{1, 64}, {3, 100}, {2, 1024}, {5, 2048}}) {
    norm_case<T> each{comm, static_cast<std::size_t>(rows), static_cast<std::size_t>(hidden)};
    const norm_results<T> expected = each.expected();
    const norm_results<T> actual = each.actual();
    const auto [r, h] = std::pair{static_cast<std::size_t>(rows), static_cast<std::size_t>(hidden)};
    const path_kind way =
        path_of(comm,
                {.operation = operation_kind::all_reduce_rms_norm,
                 .bytes = r * h * sizeof(T),
                 .staging_bytes = kernels::rms_norm_staging_bytes(r, h, data_type_of<T>)});
    if (has_order_of_its_own(comm.world_size(), way)) {
      EXPECT_TRUE(are_near(actual.residual, expected.residual, 0.5F)) << rows << " x " << hidden;
      EXPECT_TRUE(are_near(actual.out, expected.out, 1.0F)) << rows << " x " << hidden;
    } else {
      EXPECT_TRUE(same_bits(actual.residual, expected.residual)) << rows << " x " << hidden;
      EXPECT_TRUE(same_bits(actual.out, expected.out)) << rows << " x " << hidden;
    }
  }
}

struct path_case {
  path_kind path;
  int world_size;
};

class all_reduce_rms_norm_on : public testing::TestWithParam<path_case> {};

INSTANTIATE_TEST_SUITE_P(paths,
                         all_reduce_rms_norm_on,
                         testing::Values(path_case{nccl, 2},
                                         path_case{exchange_fused, 2},
                                         path_case{one_shot_fused, 2},
                                         path_case{one_shot_fused, 4}),
                         [](const auto& each) {
                           return std::string{name_of(each.param.path)} + "_" +
                                  std::to_string(each.param.world_size);
                         });

TEST_P(all_reduce_rms_norm_on, has_the_bits_of_sum_residual_and_norm_one_after_the_other) {
  path_options options;
  options.table = table_of(GetParam().path);
  options.max_bytes = std::size_t{16} << 10U;  // the largest of the cases goes by NCCL
  options.max_streams = 16;
  expect_all_succeeded(run_paths(GetParam().world_size, options, [&](communicator& comm) {
    EXPECT_EQ(path_of(comm,
                      {.operation = operation_kind::all_reduce_rms_norm,
                       .bytes = 4096,
                       .staging_bytes = 4096}),
              GetParam().path);
    expect_norms<bfloat16>(comm);
    expect_norms<float16>(comm);
    expect_norms<float>(comm);
  }));
}

}  // namespace
}  // namespace spark_comm::test_support
