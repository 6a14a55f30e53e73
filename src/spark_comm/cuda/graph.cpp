// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/graph.hpp>
#include <spark_comm/cuda/handles.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <utility>

namespace spark_comm::cuda {

graph_exec::graph_exec(device owner, unique_graph_exec handle)
    : owner_(std::move(owner)), handle_(std::move(handle)) {}

void graph_exec::launch(stream_ref s) const {
  if (!handle_) {
    throw error{errc::invalid_usage, "the executable graph was moved from"};
  }
  const driver& loaded = owner_.loaded_driver();
  const device_scope scope{owner_};
  loaded.check(loaded.table().cuGraphLaunch(handle_.get(), s.get()), "cuGraphLaunch");
}

graph::graph(device owner, unique_graph handle)
    : owner_(std::move(owner)), handle_(std::move(handle)) {}

graph_exec graph::instantiate() const {
  if (!handle_) {
    throw error{errc::invalid_usage, "the graph was moved from"};
  }
  const driver& loaded = owner_.loaded_driver();
  const device_scope scope{owner_};
  abi::graph_exec handle = nullptr;
  loaded.check(loaded.table().cuGraphInstantiateWithFlags(&handle, handle_.get(), 0),
               "cuGraphInstantiateWithFlags");
  return graph_exec{owner_, unique_graph_exec::adopt(handle, {.owner = loaded})};
}

capture_scope::capture_scope(device where, stream_ref s) : owner_(std::move(where)), stream_(s) {
  const driver& loaded = owner_.loaded_driver();
  const device_scope scope{owner_};
  loaded.check(
      loaded.table().cuStreamBeginCapture_v2(s.get(), abi::capture_mode::thread_local_mode),
      "cuStreamBeginCapture_v2");
  is_open_ = true;
}

graph capture_scope::end() {
  if (!std::exchange(is_open_, false)) {
    throw error{errc::invalid_usage, "the capture was ended before"};
  }
  const driver& loaded = owner_.loaded_driver();
  abi::graph handle = nullptr;
  const abi::result code = loaded.table().cuStreamEndCapture(stream_.get(), &handle);
  // Owned before the check, in case the driver answers with an error and a graph.
  unique_graph recorded = unique_graph::adopt(handle, {.owner = loaded});
  loaded.check(code, "cuStreamEndCapture");
  return graph{owner_, std::move(recorded)};
}

capture_scope::~capture_scope() {
  if (!is_open_) {
    return;
  }
  const driver& loaded = owner_.loaded_driver();
  abi::graph handle = nullptr;
  const abi::result code = loaded.table().cuStreamEndCapture(stream_.get(), &handle);
  const unique_graph thrown_away = unique_graph::adopt(handle, {.owner = loaded});
  // An abandoned capture is often a broken or unfinished one; that is no news to anybody.
  if (code != abi::results::stream_capture_invalidated &&
      code != abi::results::stream_capture_unjoined) {
    loaded.check_noexcept(code, "cuStreamEndCapture");
  }
}

}  // namespace spark_comm::cuda
