// SPDX-License-Identifier: AGPL-3.0-only
// Times of the device kernels: the local ones, and the exchanges between two processes that share
// one GPU (start MPS first, or they take turns) or have one each. Prints one JSON object a line.
//
//   gpu_kernels [first ordinal [second ordinal]]
#include "exchange.hpp"
#include "local.hpp"
#include "pair_channel.hpp"

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/kernels/module.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fmt/core.h>
#include <span>

namespace {

using namespace spark_comm;

bool run(const bench::pair_channel& pair, int ordinal) {
  const cuda::driver driver = cuda::driver::load("libcuda.so.1", diagnostics{});
  const cuda::device device = cuda::device::open(driver, ordinal);
  const auto loaded = kernels::kernel_module::load(device, kernels::image_kind::gpu);
  if (pair.rank() == 0) {
    fmt::print("{{\"bench\":\"device\",\"name\":\"{}\",\"architectures\":\"{}\"}}\n",
               device.info().name,
               kernels::available_on_gpu().architectures);
    bench::run_local(loaded);
  }
  pair.meet();
  return bench::run_exchange(loaded, pair);
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> arguments{argv, static_cast<std::size_t>(argc)};
  try {
    // Before anything touches the driver: a forked child cannot use its parent's.
    const auto pair = bench::pair_channel::fork_pair();
    const std::size_t own = static_cast<std::size_t>(pair.rank()) + 1;
    const int first = arguments.size() > 1 ? std::atoi(arguments[1]) : 0;
    const int ordinal = arguments.size() > own ? std::atoi(arguments[own]) : first;
    const bool is_right = run(pair, ordinal);
    static_cast<void>(std::fflush(stdout));
    const int other = pair.join();
    return is_right && other == 0 ? 0 : 1;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "gpu_kernels: {}\n", failure.what());
    return 3;
  }
}
