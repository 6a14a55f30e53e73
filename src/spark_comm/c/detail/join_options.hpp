// SPDX-License-Identifier: AGPL-3.0-only
// How to join, from the C struct: what it leaves at zero has the library's default.
#pragma once

#include <spark_comm/c/communicator.h>
#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/comm/options.hpp>

namespace spark_comm::c {

/// Throws: invalid_argument naming the field; as the environment's readers do.
[[nodiscard]] join_options to_join_options(const spark_comm_join_options& given,
                                           const arguments& check);

}  // namespace spark_comm::c
