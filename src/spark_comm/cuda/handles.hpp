// SPDX-License-Identifier: AGPL-3.0-only
// How each kind of CUDA handle is closed.
#pragma once

#include <spark_comm/core/unique_handle.hpp>
#include <spark_comm/cuda/driver.hpp>

#include <optional>

namespace spark_comm::cuda {

struct stream_traits {
  using handle_type = abi::stream;

  static handle_type null() noexcept { return nullptr; }

  void close(handle_type handle) const noexcept;

  std::optional<driver> owner;
};

struct event_traits {
  using handle_type = abi::event;

  static handle_type null() noexcept { return nullptr; }

  void close(handle_type handle) const noexcept;

  std::optional<driver> owner;
};

using unique_stream = unique_handle<stream_traits>;
using unique_event = unique_handle<event_traits>;

}  // namespace spark_comm::cuda
