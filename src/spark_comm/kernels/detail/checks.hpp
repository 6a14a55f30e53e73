// SPDX-License-Identifier: AGPL-3.0-only
// Argument checks of the launchers: all before anything is enqueued.
#pragma once

#include <spark_comm/core/data_type.hpp>

#include <cstddef>
#include <string_view>

namespace spark_comm::kernels::detail {

/// Throws: invalid_argument with `message` unless `holds`.
void require(bool holds, std::string_view message);

/// Throws: invalid_argument unless there are kernels for `dtype`; the text lists them.
void require_kernel_type(data_type dtype);

/// Throws: invalid_argument when `address` is null or not a multiple of `element_bytes`.
void require_elements(const void* address, std::size_t element_bytes, std::string_view name);

/// Throws: invalid_argument when the two ranges of `bytes` overlap without being equal.
void require_equal_or_disjoint(const void* a, const void* b, std::size_t bytes);

}  // namespace spark_comm::kernels::detail
