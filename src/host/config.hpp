// SPDX-License-Identifier: AGPL-3.0-only
// Reads a caller's ncclConfig_t as NCCL 2.28.9 does: cut to the smaller size, gated by version,
// checked.
#pragma once

#include "nccl_abi.hpp"

#include <optional>
#include <string>

namespace spark_comm::host::nccl {

/// What of a config matters here, or is reported back.
struct settings {
  bool is_blocking = true;
  bool shares_on_split = false;
  bool shares_on_shrink = false;
  std::string name;
};

/// Fills `out` from `given`; null means `inherited`, the parent's settings or the defaults.
/// Returns invalid_argument (with the text kept) for what NCCL refuses.
[[nodiscard]] int read_config(const config* given, const settings& inherited, settings& out);

}  // namespace spark_comm::host::nccl
