// SPDX-License-Identifier: AGPL-3.0-only
// What the two norm launchers share.
#pragma once

#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/rms_norm.hpp>

namespace spark_comm::kernels::detail {

/// Throws: invalid_argument. Not the number of partials: that is the launcher's.
void check(const rms_norm_call& call);

[[nodiscard]] rms_norm_parameters parameters_of(const rms_norm_call& call);

}  // namespace spark_comm::kernels::detail
