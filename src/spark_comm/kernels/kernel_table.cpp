// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/kernels/detail/kernel_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fmt/core.h>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::kernels::detail {
namespace {

std::string_view name_of(kernel_family family) noexcept {
  switch (family) {
    case kernel_family::add:               return "add";
    case kernel_family::rms_norm:          return "rms_norm";
    case kernel_family::one_shot:          return "one_shot";
    case kernel_family::one_shot_rms_norm: return "one_shot_rms_norm";
    case kernel_family::two_shot:          return "two_shot";
    case kernel_family::low_latency:       return "low_latency";
  }
  return "unknown";
}

std::vector<input_count> inputs_of(kernel_family family) {
  switch (family) {
    case kernel_family::rms_norm:          return {input_count::any, input_count::one, input_count::two};
    case kernel_family::add:
    case kernel_family::one_shot:
    case kernel_family::one_shot_rms_norm: return {input_count::any, input_count::two};
    case kernel_family::two_shot:
    case kernel_family::low_latency:       return {input_count::any};
  }
  return {};
}

std::uint8_t variants_of(kernel_family family, data_type dtype) noexcept {
  switch (family) {
    case kernel_family::add:
      return dtype == data_type::float32 ? 2 : 3;  // fp32 has no 2-byte vectors
    case kernel_family::rms_norm:
    case kernel_family::one_shot_rms_norm: return 3;
    case kernel_family::one_shot:
    case kernel_family::two_shot:
    case kernel_family::low_latency:       return 1;
  }
  return 0;
}

}  // namespace

bool has_kernels(data_type dtype) noexcept {
  return std::ranges::find(kernel_types, dtype) != kernel_types.end();
}

std::size_t slot_of(const kernel_key& key) noexcept {
  const auto type =
      static_cast<std::size_t>(std::ranges::find(kernel_types, key.dtype) - kernel_types.begin());
  const auto family = static_cast<std::size_t>(key.family);
  const auto inputs = static_cast<std::size_t>(key.inputs);
  return ((family * kernel_types.size() + type) * 3 + inputs) * 3 + key.variant;
}

std::string name_of(const kernel_key& key) {
  return fmt::format("{}_{}_n{}_v{}",
                     name_of(key.family),
                     spark_comm::name_of(key.dtype),
                     static_cast<int>(key.inputs),
                     key.variant);
}

std::vector<kernel_key> keys_of(kernel_family family) {
  std::vector<kernel_key> keys;
  for (const data_type dtype : kernel_types) {
    for (const input_count inputs : inputs_of(family)) {
      for (std::uint8_t variant = 0; variant < variants_of(family, dtype); ++variant) {
        keys.push_back({family, dtype, inputs, variant});
      }
    }
  }
  return keys;
}

}  // namespace spark_comm::kernels::detail
