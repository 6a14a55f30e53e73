// SPDX-License-Identifier: AGPL-3.0-only
// Kernels as host functions: found by name, run in stream order with copies of their arguments.
#include "driver_calls.hpp"

#include <spark_comm/cuda/abi.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <host/host_module.hpp>

namespace spark_comm::host_test {

namespace {

using host::host_dimensions;

class modules : public driver_fixture {};

void scale(void** arguments, host_dimensions grid, host_dimensions block) {
  auto* values = *static_cast<float**>(arguments[0]);
  const float factor = *static_cast<float*>(arguments[1]);
  for (unsigned int index = 0; index < grid.x * block.x; ++index) {
    values[index] *= factor;
  }
}

void nothing(void** /*arguments*/, host_dimensions /*grid*/, host_dimensions /*block*/) {}

constexpr std::uint32_t scale_arguments[] = {sizeof(float*), sizeof(float)};
constexpr host::host_kernel_entry entries[] = {
    {"scale", &scale, scale_arguments, 2, host::host_kernel_never_waits},
    {"nothing", &nothing, nullptr, 0, host::host_kernel_default},
};
constexpr host::host_module_image image{host::host_module_magic, 2, entries};

abi::result launch(abi::function function, abi::stream s, void** arguments, unsigned int grid = 2) {
  return cuLaunchKernel(function, grid, 1, 1, 4, 1, 1, 0, s, arguments, nullptr);
}

TEST_F(modules, run_kernels_with_the_arguments_of_the_launch) {
  abi::stream s = make_stream();
  abi::module module = nullptr;
  abi::function function = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, &image), results::success);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "scale"), results::success);
  auto* values = allocate<float>(8);
  for (int index = 0; index < 8; ++index) {
    values[index] = static_cast<float>(index);
  }
  float factor = 2;
  void* arguments[] = {&values, &factor};
  gate door;
  door.block(s);
  ASSERT_EQ(launch(function, s, arguments), results::success);
  factor = 100;
  door.open();
  EXPECT_EQ(cuStreamSynchronize(s), results::success);
  EXPECT_EQ(values[7], 14.0F);
  free_memory(values);
  EXPECT_EQ(cuModuleUnload(module), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

TEST_F(modules, kernels_run_again_from_graphs) {
  abi::stream s = make_stream();
  abi::module module = nullptr;
  abi::function function = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, &image), results::success);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "scale"), results::success);
  auto* values = allocate<float>(8);
  values[0] = 1;
  float factor = 2;
  void* arguments[] = {&values, &factor};
  abi::graph g = nullptr;
  abi::graph_exec exec = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(s, abi::capture_mode::global), results::success);
  ASSERT_EQ(launch(function, s, arguments), results::success);
  ASSERT_EQ(cuStreamEndCapture(s, &g), results::success);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, g, 0), results::success);
  for (int run = 0; run < 10; ++run) {
    ASSERT_EQ(cuGraphLaunch(exec, s), results::success);
  }
  EXPECT_EQ(cuStreamSynchronize(s), results::success);
  EXPECT_EQ(values[0], 1024.0F);
  EXPECT_EQ(cuGraphExecDestroy(exec), results::success);
  EXPECT_EQ(cuGraphDestroy(g), results::success);
  free_memory(values);
  EXPECT_EQ(cuModuleUnload(module), results::success);
  EXPECT_EQ(cuStreamDestroy_v2(s), results::success);
}

TEST_F(modules, refuse_what_they_cannot_run) {
  abi::module module = nullptr;
  // A fat binary begins with 0xba55ed50, an ELF file with 0x7f "ELF".
  const std::uint64_t fat_binary[] = {0x100001ba55ed50U, 0};
  EXPECT_EQ(cuModuleLoadData(&module, fat_binary), results::no_binary_for_gpu);
  EXPECT_EQ(cuModuleLoadData(&module, ".version 8.0\n.target sm_90"), results::no_binary_for_gpu);
  EXPECT_EQ(cuModuleLoadData(&module, nullptr), results::invalid_value);
  ASSERT_EQ(cuModuleLoadData(&module, &image), results::success);
  abi::function function = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&function, module, "none"), results::not_found);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "nothing"), results::success);
  EXPECT_EQ(launch(function, nullptr, nullptr), results::success);
  EXPECT_EQ(launch(function, nullptr, nullptr, 0), results::invalid_value);
  EXPECT_EQ(cuStreamSynchronize(nullptr), results::success);
  abi::function scale_function = nullptr;
  ASSERT_EQ(cuModuleGetFunction(&scale_function, module, "scale"), results::success);
  EXPECT_EQ(launch(scale_function, nullptr, nullptr), results::invalid_value);
  EXPECT_EQ(cuModuleUnload(module), results::success);
  EXPECT_EQ(cuModuleUnload(module), results::invalid_handle);
  EXPECT_EQ(launch(function, nullptr, nullptr), results::invalid_handle);
}

}  // namespace

}  // namespace spark_comm::host_test
