// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/kernels/detail/checks.hpp>
#include <spark_comm/kernels/detail/kernel_table.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <fmt/core.h>
#include <string>
#include <string_view>

namespace spark_comm::kernels::detail {

void require(bool holds, std::string_view message) {
  if (!holds) {
    throw error{errc::invalid_argument, std::string{message}};
  }
}

void require_kernel_type(data_type dtype) {
  if (!has_kernels(dtype)) {
    throw error{errc::invalid_argument,
                fmt::format("there are kernels for bf16, fp16 and fp32, none for {}",
                            spark_comm::name_of(dtype))};
  }
}

void require_elements(const void* address, std::size_t element_bytes, std::string_view name) {
  if (address == nullptr) {
    throw error{errc::invalid_argument, fmt::format("{} is null", name)};
  }
  if (std::bit_cast<std::uintptr_t>(address) % element_bytes != 0) {
    throw error{errc::invalid_argument,
                fmt::format("{} is at {}, which is no multiple of its {}-byte elements",
                            name,
                            address,
                            element_bytes)};
  }
}

void require_equal_or_disjoint(const void* a, const void* b, std::size_t bytes) {
  const auto first = std::bit_cast<std::uintptr_t>(a);
  const auto second = std::bit_cast<std::uintptr_t>(b);
  const std::uintptr_t distance = first < second ? second - first : first - second;
  require(distance == 0 || distance >= bytes,
          "input and output overlap; they must be equal or disjoint");
}

}  // namespace spark_comm::kernels::detail
