// SPDX-License-Identifier: AGPL-3.0-only
// Which kernels there are, and what they are called in device and host images.
#pragma once

#include <spark_comm/core/data_type.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spark_comm::kernels::detail {

/// One source file of kernels each, and one device image.
enum class kernel_family : std::uint8_t {
  add,                ///< variant: vector of 16, 4 or 2 bytes; inputs: 2 or any.
  rms_norm,           ///< variant: chunks held 1, 2, none; inputs: 1, 2 or any.
  one_shot,           ///< inputs: world 2 or any.
  one_shot_rms_norm,  ///< variant: as rms_norm; inputs: world 2 or any.
  two_shot,           ///< inputs: any.
  low_latency,        ///< inputs: any.
};

inline constexpr std::array all_kernel_families = {
    kernel_family::add,
    kernel_family::rms_norm,
    kernel_family::one_shot,
    kernel_family::one_shot_rms_norm,
    kernel_family::two_shot,
    kernel_family::low_latency,
};

/// How many inputs or ranks a kernel is made for.
enum class input_count : std::uint8_t {
  any = 0,  ///< A number given at launch; 2 or more.
  one = 1,  ///< Nothing to add.
  two = 2,  ///< Unrolled for a pair.
};

/// One kernel.
struct kernel_key {
  kernel_family family = kernel_family::add;
  data_type dtype = data_type::bfloat16;
  input_count inputs = input_count::any;
  std::uint8_t variant = 0;

  friend bool operator==(const kernel_key&, const kernel_key&) = default;
};

inline constexpr std::size_t kernel_slots = all_kernel_families.size() * 3 * 3 * 3;

/// The element types of all kernels.
inline constexpr std::array kernel_types = {
    data_type::bfloat16, data_type::float16, data_type::float32};

/// Whether `dtype` is one of `kernel_types`.
[[nodiscard]] bool has_kernels(data_type dtype) noexcept;

/// A number below `kernel_slots`, different for every key.
[[nodiscard]] std::size_t slot_of(const kernel_key& key) noexcept;

/// The name in images: "add_bf16_n2_v0".
[[nodiscard]] std::string name_of(const kernel_key& key);

/// The kernels of a family, all of them.
[[nodiscard]] std::vector<kernel_key> keys_of(kernel_family family);

}  // namespace spark_comm::kernels::detail
