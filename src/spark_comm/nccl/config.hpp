// SPDX-License-Identifier: AGPL-3.0-only
// Options of an NCCL communicator, checked before NCCL sees them.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/nccl/abi.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace spark_comm::nccl {

/// What a program may ask of a communicator. Everything unset is NCCL's own default.
/// `blocking` is not here: the library decides it (bounded init at blocking speed).
struct config_options {
  std::optional<int> min_ctas = {};                 ///< Fewest thread blocks, at least 1.
  std::optional<int> max_ctas = {};                 ///< Most thread blocks, at least `min_ctas`.
  std::optional<int> cga_cluster_size = {};         ///< 0 switches clusters off.
  std::optional<int> traffic_class = {};            ///< RoCE traffic class, since 2.26.
  std::optional<int> n_channels_per_net_peer = {};  ///< 1 to 64, since 2.28.
  std::string net_name = {};  ///< Network plugin by name, at most 255 characters.
};

/// Whether calls return before their work is launched.
enum class blocking_mode : std::uint8_t {
  blocking,      ///< Fast to launch; init cannot be bounded.
  non_blocking,  ///< Bounded init; every launch costs a thread.
};

/// Throws: invalid_argument naming the field, its value and what is accepted.
SPARK_COMM_API void validate(const config_options& options);

/// The native struct for `options`. `options` must outlive it: the name is not copied.
/// `options` is validated and never changed.
[[nodiscard]] SPARK_COMM_API abi::config make_config(const config_options& options,
                                                     blocking_mode mode);

}  // namespace spark_comm::nccl
