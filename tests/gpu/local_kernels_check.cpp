// SPDX-License-Identifier: AGPL-3.0-only
// add and rms_norm on a GPU give the bits of their host equivalents.
#include "support/gpu.hpp"
#include "support/inline_driver.hpp"
#include "support/typed_buffer.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/add.hpp>
#include <spark_comm/kernels/rms_norm.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace spark_comm::kernels {
namespace {

using test::gpu_copy;
using test::typed_buffer;

const cuda::stream_ref inline_stream = cuda::stream_ref::default_stream();

enum class filling : std::uint8_t { numbers, any_bits };

template <typename T>
typed_buffer<T> filled(filling how, std::size_t count, std::uint32_t seed, std::size_t offset) {
  typed_buffer<T> buffer{count, offset};
  if (how == filling::numbers) {
    test::fill_random(buffer, seed);
  } else {
    test::fill_bits(buffer, seed);
  }
  return buffer;
}

template <typename T>
class local_kernels : public test::gpu_test {};

using element_types = testing::Types<bfloat16, float16, float>;
TYPED_TEST_SUITE(local_kernels, element_types);

template <typename T>
void check_add(
    const test::gpu& gpu, filling how, std::size_t inputs, std::size_t count, std::size_t offset) {
  std::vector<typed_buffer<T>> host;
  std::vector<gpu_copy<T>> device;
  std::vector<const void*> host_inputs;
  std::vector<const void*> device_inputs;
  for (std::size_t r = 0; r < inputs; ++r) {
    host.push_back(filled<T>(how, count, static_cast<std::uint32_t>(r + 1), r == 1 ? offset : 0));
    device.emplace_back(gpu, host.back());
    host_inputs.push_back(host.back().data());
    device_inputs.push_back(device.back().data());
  }
  const typed_buffer<T> expected{count, offset / 2};
  const gpu_copy<T> out{gpu, expected};
  add(test::inline_kernels(),
      {data_type_of<T>, host_inputs, expected.data(), count},
      inline_stream);
  add(gpu.kernels, {data_type_of<T>, device_inputs, out.data(), count}, gpu.stream);
  const typed_buffer<T> got = out.download();
  ASSERT_TRUE(got.equals(expected)) << inputs << " inputs, " << count << " elements, " << offset;
  ASSERT_TRUE(got.is_guarded()) << count << ' ' << offset;
}

TYPED_TEST(local_kernels, add_gives_the_bits_of_the_host) {
  using T = TypeParam;
  for (const filling how : {filling::numbers, filling::any_bits}) {
    for (const std::size_t inputs : {2U, 3U, 8U}) {
      for (const std::size_t count : {1U, 7U, 8U, 9U, 67U, 4096U, 100003U}) {
        for (std::size_t offset = 0; offset < 16 / sizeof(T); ++offset) {
          check_add<T>(this->device(), how, inputs, count, offset);
          if (this->HasFatalFailure()) {
            return;
          }
        }
      }
    }
  }
}

struct norm_shape {
  std::size_t partials;
  std::size_t rows;
  std::size_t hidden;
  std::size_t offset;
};

// The same call on host and device memory.
template <typename T>
struct norm_pair {
  norm_pair(const test::gpu& gpu, const norm_shape& s, filling how)
      : residual(filled<T>(how, s.rows * s.hidden, 50, s.offset)),
        weight(filled<T>(filling::numbers, s.hidden, 51, 0)),
        residual_out(s.rows * s.hidden, s.offset),
        out(s.rows * s.hidden),
        quantised(s.rows * s.hidden, s.offset),
        scales(s.rows),
        device_residual(gpu, residual),
        device_weight(gpu, weight),
        device_residual_out(gpu, residual_out),
        device_out(gpu, out),
        device_quantised(gpu, quantised),
        device_scales(gpu, scales) {
    for (std::size_t r = 0; r < s.partials; ++r) {
      const auto seed = static_cast<std::uint32_t>(r + 1);
      partials.push_back(filled<T>(how, s.rows * s.hidden, seed, r == 0 ? s.offset : 0));
      device_partials.emplace_back(gpu, partials.back());
      host_inputs.push_back(partials.back().data());
      device_inputs.push_back(device_partials.back().data());
    }
    host_call = {.dtype = data_type_of<T>,
                 .partials = host_inputs,
                 .residual = residual.data(),
                 .weight = weight.data(),
                 .residual_out = residual_out.data(),
                 .out = out.data(),
                 .rows = s.rows,
                 .hidden = s.hidden};
    device_call = host_call;
    device_call.partials = device_inputs;
    device_call.residual = device_residual.data();
    device_call.weight = device_weight.data();
    device_call.residual_out = device_residual_out.data();
    device_call.out = device_out.data();
  }

  void quantise() {
    host_call.out = quantised.data();
    host_call.scales = scales.data();
    device_call.out = device_quantised.data();
    device_call.scales = device_scales.data();
  }

  typed_buffer<T> residual;
  typed_buffer<T> weight;
  typed_buffer<T> residual_out;
  typed_buffer<T> out;
  typed_buffer<float8_e4m3> quantised;
  typed_buffer<float> scales;
  gpu_copy<T> device_residual;
  gpu_copy<T> device_weight;
  gpu_copy<T> device_residual_out;
  gpu_copy<T> device_out;
  gpu_copy<float8_e4m3> device_quantised;
  gpu_copy<float> device_scales;
  std::vector<typed_buffer<T>> partials;
  std::vector<gpu_copy<T>> device_partials;
  std::vector<const void*> host_inputs;
  std::vector<const void*> device_inputs;
  rms_norm_call host_call;
  rms_norm_call device_call;
};

template <typename T>
void expect_same(const typed_buffer<T>& got, const typed_buffer<T>& expected, const char* what) {
  EXPECT_TRUE(got.is_guarded()) << what;
  for (std::size_t i = 0; i < expected.count(); ++i) {
    if (std::memcmp(&got[i], &expected[i], sizeof(T)) != 0) {
      FAIL() << what << " differs first at " << i << " of " << expected.count();
    }
  }
}

template <typename T>
void check_norm(const test::gpu& gpu, const norm_shape& s, filling how) {
  SCOPED_TRACE(testing::Message() << s.partials << " partials, " << s.rows << " x " << s.hidden
                                  << ", offset " << s.offset);
  norm_pair<T> pair{gpu, s, how};
  rms_norm(test::inline_kernels(), pair.host_call, inline_stream);
  rms_norm(gpu.kernels, pair.device_call, gpu.stream);
  expect_same(pair.device_residual_out.download(), pair.residual_out, "residual_out");
  expect_same(pair.device_out.download(), pair.out, "out");
  pair.quantise();
  rms_norm(test::inline_kernels(), pair.host_call, inline_stream);
  rms_norm(gpu.kernels, pair.device_call, gpu.stream);
  expect_same(pair.device_quantised.download(), pair.quantised, "quantised");
  expect_same(pair.device_scales.download(), pair.scales, "scales");
}

TYPED_TEST(local_kernels, rms_norm_gives_the_bits_of_the_host) {
  for (const std::size_t partials : {1U, 2U, 3U, 8U}) {
    for (const std::size_t hidden :
         {1U, 7U, 8U, 31U, 136U, 2048U, 4096U, 4097U, 5120U, 8192U, 16384U, 16392U, 20001U}) {
      for (const std::size_t offset : {0U, 1U}) {
        check_norm<TypeParam>(this->device(), {partials, 3, hidden, offset}, filling::numbers);
        if (this->HasFailure()) {
          return;
        }
      }
    }
  }
}

TYPED_TEST(local_kernels, rms_norm_of_many_rows_and_of_any_bits_gives_the_bits_of_the_host) {
  check_norm<TypeParam>(this->device(), {2, 512, 1024, 0}, filling::numbers);
  check_norm<TypeParam>(this->device(), {2, 64, 40, 0}, filling::any_bits);
  check_norm<TypeParam>(this->device(), {1, 2000, 1, 0}, filling::any_bits);
}

TYPED_TEST(local_kernels, rms_norm_repeats_itself_bit_for_bit) {
  using T = TypeParam;
  norm_pair<T> pair{this->device(), {2, 64, 8192, 0}, filling::numbers};
  rms_norm(this->device().kernels, pair.device_call, this->device().stream);
  const typed_buffer<T> first = pair.device_out.download();
  for (int i = 0; i < 20; ++i) {
    rms_norm(this->device().kernels, pair.device_call, this->device().stream);
    ASSERT_TRUE(pair.device_out.download().equals(first)) << i;
  }
}

}  // namespace
}  // namespace spark_comm::kernels
