// SPDX-License-Identifier: AGPL-3.0-only
#include "local.hpp"

#include "timing.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/kernels/add.hpp>
#include <spark_comm/kernels/module.hpp>
#include <spark_comm/kernels/rms_norm.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fmt/core.h>
#include <span>
#include <string_view>

namespace spark_comm::bench {
namespace {

constexpr std::size_t element_bytes = 2;  // bf16

void nobody() {}

// Operands of the largest case; smaller ones use the start of them.
struct operands {
  operands(const cuda::device& where, const cuda::stream& s, std::size_t elements)
      : a(filled(where, s, elements)),
        b(filled(where, s, elements)),
        residual(filled(where, s, elements)),
        weight(filled(where, s, elements)),
        residual_out(filled(where, s, elements)),
        out(filled(where, s, elements)),
        scales(filled(where, s, elements)) {
    finish(s);
  }

  static cuda::device_buffer filled(const cuda::device& where,
                                    const cuda::stream& s,
                                    std::size_t elements) {
    cuda::device_buffer buffer = cuda::device_buffer::allocate(where, elements * element_bytes);
    // 0x3c3c is a small bf16 number, neither zero nor subnormal.
    cuda::fill_async(where, buffer.address(), 0x3c, buffer.size_bytes(), s);
    return buffer;
  }

  cuda::device_buffer a;
  cuda::device_buffer b;
  cuda::device_buffer residual;
  cuda::device_buffer weight;
  cuda::device_buffer residual_out;
  cuda::device_buffer out;
  cuda::device_buffer scales;
};

// A copy that reads and writes `traffic` bytes in all.
double copy_us(const cuda::stream& s, const operands& on, std::size_t traffic, int count) {
  const std::size_t bytes = std::min(traffic / 2, on.a.size_bytes());
  const double scale = static_cast<double>(traffic) / 2 / static_cast<double>(bytes);
  return scale * back_to_back_us(
                     s,
                     count,
                     [&](cuda::stream_ref where) {
                       cuda::copy_async(s.owner(), on.b.address(), on.a.address(), bytes, where);
                     },
                     nobody);
}

struct norm_size {
  std::size_t rows;
  std::size_t hidden;
};

void print(
    std::string_view what, const norm_size& size, std::size_t traffic, double us, double copy) {
  const auto gigabytes = [&](double time) { return static_cast<double>(traffic) / time / 1000; };
  fmt::print(
      "{{\"bench\":\"{}\",\"dtype\":\"bf16\",\"rows\":{},\"hidden\":{},\"us\":{:.3f},"
      "\"gb_per_s\":{:.1f},\"copy_of_same_bytes_us\":{:.3f},\"copy_gb_per_s\":{:.1f},"
      "\"speed_relative_to_copy\":{:.3f}}}\n",
      what,
      size.rows,
      size.hidden,
      us,
      gigabytes(us),
      copy,
      gigabytes(copy),
      copy / us);
}

void run_norm(const kernels::kernel_module& loaded,
              const cuda::stream& s,
              const operands& on,
              const norm_size& size) {
  const std::size_t tensor = size.rows * size.hidden * element_bytes;
  const int count = tensor > (std::size_t{8} << 20U) ? 4 : 40;
  for (const std::size_t partials : {1U, 2U}) {
    for (const bool is_quantised : {false, true}) {
      const std::array<const void*, 2> inputs = {on.a.address(), on.b.address()};
      const kernels::rms_norm_call call{
          .dtype = data_type::bfloat16,
          .partials = std::span{inputs}.first(partials),
          .residual = on.residual.address(),
          .weight = on.weight.address(),
          .residual_out = on.residual_out.address(),
          .out = on.out.address(),
          .scales = is_quantised ? static_cast<float*>(on.scales.address()) : nullptr,
          .rows = size.rows,
          .hidden = size.hidden};
      const double us = back_to_back_us(
          s,
          count,
          [&](cuda::stream_ref where) { kernels::rms_norm(loaded, call, where); },
          nobody);
      const std::size_t written = tensor + (is_quantised ? tensor / 2 : tensor);
      const std::size_t traffic = (partials + 1) * tensor + written + size.hidden * element_bytes;
      print(is_quantised ? (partials == 1 ? "residual_rms_norm_fp8" : "add_residual_rms_norm_fp8")
                         : (partials == 1 ? "residual_rms_norm" : "add_residual_rms_norm"),
            size,
            traffic,
            us,
            copy_us(s, on, traffic, count));
    }
  }
}

void run_add(const kernels::kernel_module& loaded,
             const cuda::stream& s,
             const operands& on,
             std::size_t elements) {
  const std::array<const void*, 2> inputs = {on.a.address(), on.b.address()};
  const kernels::add_call call{data_type::bfloat16, inputs, on.out.address(), elements};
  const int count = elements > (std::size_t{4} << 20U) ? 4 : 40;
  const double us = back_to_back_us(
      s, count, [&](cuda::stream_ref where) { kernels::add(loaded, call, where); }, nobody);
  const std::size_t traffic = 3 * elements * element_bytes;
  print("add", {1, elements}, traffic, us, copy_us(s, on, traffic, count));
}

}  // namespace

void run_local(const kernels::kernel_module& loaded) {
  const cuda::stream s = loaded.owner().create_stream();
  const operands on{loaded.owner(), s, std::size_t{8192} * 8192};
  for (const std::size_t hidden : {2048U, 4096U, 8192U}) {
    for (const std::size_t rows : {1U, 4U, 16U, 64U, 128U, 512U, 8192U}) {
      run_norm(loaded, s, on, {rows, hidden});
    }
  }
  for (std::size_t elements = 4096; elements <= std::size_t{64} << 20U; elements *= 16) {
    run_add(loaded, s, on, elements);
  }
}

}  // namespace spark_comm::bench
