// SPDX-License-Identifier: AGPL-3.0-only
#include "support/inline_driver.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/kernels/detail/device_images.hpp>
#include <spark_comm/kernels/detail/host_image.hpp>
#include <spark_comm/kernels/detail/kernel_table.hpp>
#include <spark_comm/kernels/module.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>

namespace spark_comm::kernels {
namespace {

using detail::kernel_family;

TEST(kernel_table, gives_every_kernel_a_slot_and_a_name_of_its_own) {
  std::set<std::size_t> slots;
  std::set<std::string> names;
  std::size_t count = 0;
  for (const kernel_family family : detail::all_kernel_families) {
    for (const detail::kernel_key& key : detail::keys_of(family)) {
      EXPECT_LT(detail::slot_of(key), detail::kernel_slots);
      slots.insert(detail::slot_of(key));
      names.insert(detail::name_of(key));
      ++count;
    }
  }
  EXPECT_EQ(slots.size(), count);
  EXPECT_EQ(names.size(), count);
}

TEST(kernel_table, spells_names_as_the_device_code_does) {
  EXPECT_EQ(detail::name_of({.family = kernel_family::add,
                             .dtype = data_type::bfloat16,
                             .inputs = detail::input_count::two,
                             .variant = 1}),
            "add_bf16_n2_v1");
  EXPECT_EQ(detail::name_of({.family = kernel_family::one_shot_rms_norm,
                             .dtype = data_type::float32,
                             .inputs = detail::input_count::any,
                             .variant = 2}),
            "one_shot_rms_norm_fp32_n0_v2");
}

TEST(kernel_table, host_image_holds_every_kernel) {
  const auto image = detail::make_host_image();
  std::set<std::string> names;
  for (std::size_t i = 0; i < image->count; ++i) {
    const detail::host_kernel_entry& entry = image->entries[i];
    EXPECT_NE(entry.function, nullptr);
    EXPECT_EQ(entry.argument_count, 1U);
    EXPECT_GT(entry.argument_bytes[0], 0U);
    names.insert(entry.name);
  }
  for (const kernel_family family : detail::all_kernel_families) {
    for (const detail::kernel_key& key : detail::keys_of(family)) {
      EXPECT_TRUE(names.contains(name_of(key))) << name_of(key);
    }
  }
}

TEST(kernel_table, only_kernels_that_exchange_may_wait) {
  const auto image = detail::make_host_image();
  for (std::size_t i = 0; i < image->count; ++i) {
    const std::string name = image->entries[i].name;
    const bool is_local = name.starts_with("add") || name.starts_with("rms_norm");
    EXPECT_EQ(image->entries[i].flags,
              is_local ? detail::host_kernel_never_waits : detail::host_kernel_may_wait)
        << name;
  }
}

TEST(module, says_whether_device_code_was_built_and_why) {
  const gpu_availability availability = available_on_gpu();
  EXPECT_FALSE(availability.reason.empty());
  EXPECT_EQ(availability.is_built, !availability.architectures.empty());
  for (const kernel_family family : detail::all_kernel_families) {
    EXPECT_EQ(detail::device_image(family) != nullptr, availability.is_built);
  }
}

TEST(module, refuses_device_code_that_is_not_for_this_device) {
  const cuda::device device = cuda::device::open(test::inline_driver(), 0);
  try {
    static_cast<void>(kernel_module::load(device, image_kind::gpu));
    FAIL() << "the host runtime took device code";
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::not_supported);
    EXPECT_FALSE(failure.message().empty());
  }
}

TEST(module, copies_share_what_is_loaded) {
  const kernel_module kernels = test::inline_kernels();
  const kernel_module copy = kernels;
  EXPECT_EQ(copy.owner().ordinal(), 0);
  EXPECT_EQ(copy.multiprocessors(), 4);
}

}  // namespace
}  // namespace spark_comm::kernels
