// SPDX-License-Identifier: AGPL-3.0-only
// The device code that the build embedded, one fat binary a kernel family.
#pragma once

#include <spark_comm/kernels/detail/kernel_table.hpp>

namespace spark_comm::kernels::detail {

/// What cuModuleLoadData takes; null when the build has no device code.
[[nodiscard]] const void* device_image(kernel_family family) noexcept;

}  // namespace spark_comm::kernels::detail
