// SPDX-License-Identifier: AGPL-3.0-only
// How each kind of CUDA handle is closed.
#pragma once

#include <spark_comm/core/unique_handle.hpp>
#include <spark_comm/cuda/driver.hpp>

#include <optional>

namespace spark_comm::cuda {

/// Traits for `unique_handle`: closes with the driver that made the handle, and reports what goes
/// wrong. None of these calls needs a current context. `Kind` names the handle's type and the call.
template <typename Kind>
struct handle_traits {
  using handle_type = typename Kind::handle_type;

  static handle_type null() noexcept { return nullptr; }

  void close(handle_type handle) const noexcept {
    if (owner) {
      owner->check_noexcept((owner->table().*Kind::destroy)(handle), Kind::function);
    }
  }

  std::optional<driver> owner;
};

struct stream_kind {
  using handle_type = abi::stream;
  static constexpr auto destroy = &api::cuStreamDestroy_v2;
  static constexpr const char* function = "cuStreamDestroy_v2";
};

struct event_kind {
  using handle_type = abi::event;
  static constexpr auto destroy = &api::cuEventDestroy_v2;
  static constexpr const char* function = "cuEventDestroy_v2";
};

struct graph_kind {
  using handle_type = abi::graph;
  static constexpr auto destroy = &api::cuGraphDestroy;
  static constexpr const char* function = "cuGraphDestroy";
};

struct graph_exec_kind {
  using handle_type = abi::graph_exec;
  static constexpr auto destroy = &api::cuGraphExecDestroy;
  static constexpr const char* function = "cuGraphExecDestroy";
};

using stream_traits = handle_traits<stream_kind>;
using event_traits = handle_traits<event_kind>;
using graph_traits = handle_traits<graph_kind>;
using graph_exec_traits = handle_traits<graph_exec_kind>;

using unique_stream = unique_handle<stream_traits>;
using unique_event = unique_handle<event_traits>;
using unique_graph = unique_handle<graph_traits>;
using unique_graph_exec = unique_handle<graph_exec_traits>;

}  // namespace spark_comm::cuda
