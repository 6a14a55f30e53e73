// SPDX-License-Identifier: AGPL-3.0-only
// Exported driver calls: capture and graphs; and the count of what is alive.
#include "api_guard.hpp"
#include "capture.hpp"
#include "driver_abi.hpp"
#include "exports.hpp"
#include "graph.hpp"
#include "memory.hpp"
#include "process.hpp"
#include "stream.hpp"
#include "stream_state.hpp"

#include <atomic>
#include <memory>
#include <utility>

namespace spark_comm::host {

namespace {

bool is_mode(driver::capture_mode mode) noexcept {
  return mode == driver::capture_mode::global || mode == driver::capture_mode::thread_local_mode ||
         mode == driver::capture_mode::relaxed;
}

}  // namespace

extern "C" {

driver::result cuStreamIsCapturing(driver::stream handle, driver::capture_status* status) {
  return stream_call(__func__, handle, [&](const stream_ptr& target) {
    if (status == nullptr) {
      return driver::invalid_value;
    }
    *status = target->capture_state().load(std::memory_order_acquire);
    return driver::success;
  });
}

driver::result cuStreamBeginCapture_v2(driver::stream handle, driver::capture_mode mode) {
  return stream_call(__func__, handle, [&](const stream_ptr& target) {
    return is_mode(mode) ? begin_capture(target, mode) : driver::invalid_value;
  });
}

driver::result cuStreamEndCapture(driver::stream handle, driver::graph* graph_handle) {
  return stream_call(__func__, handle, [&](const stream_ptr& target) {
    if (graph_handle == nullptr) {
      return driver::invalid_value;
    }
    *graph_handle = nullptr;
    std::shared_ptr<graph_plan> plan;
    const driver::result result = end_capture(target, plan);
    if (result == driver::success) {
      auto made = std::make_shared<graph>(graph{.plan = std::move(plan)});
      *graph_handle = static_cast<driver::graph>(process().graphs.insert(std::move(made)));
    }
    return result;
  });
}

driver::result cuThreadExchangeStreamCaptureMode(driver::capture_mode* mode) {
  return driver_call(__func__, [&] {
    if (mode == nullptr || !is_mode(*mode)) {
      return driver::invalid_value;
    }
    *mode = exchange_thread_mode(*mode);
    return driver::success;
  });
}

driver::result cuGraphInstantiateWithFlags(driver::graph_exec* exec,
                                           driver::graph handle,
                                           unsigned long long flags) {
  constexpr unsigned long long free_on_launch = 1;
  constexpr unsigned long long node_priority = 8;
  return context_call(__func__, [&](int) {
    const std::shared_ptr<graph> source = process().graphs.find(handle);
    if (source == nullptr) {
      return driver::invalid_handle;
    }
    if (exec == nullptr || (flags & ~(free_on_launch | node_priority)) != 0) {
      return driver::invalid_value;
    }
    auto made = std::make_shared<executable>(source->plan);
    *exec = static_cast<driver::graph_exec>(process().executables.insert(std::move(made)));
    return driver::success;
  });
}

driver::result cuGraphLaunch(driver::graph_exec exec, driver::stream handle) {
  return stream_call(__func__, handle, [&](const stream_ptr& target) {
    const std::shared_ptr<executable> launched = process().executables.find(exec);
    return launched == nullptr ? driver::invalid_handle : launched->launch(target);
  });
}

driver::result cuGraphExecDestroy(driver::graph_exec exec) {
  return driver_call(__func__, [&] {
    return process().executables.remove(exec) == nullptr ? driver::invalid_handle : driver::success;
  });
}

driver::result cuGraphDestroy(driver::graph handle) {
  return driver_call(__func__, [&] {
    return process().graphs.remove(handle) == nullptr ? driver::invalid_handle : driver::success;
  });
}

int spark_comm_host_live_handles(int kind) {
  const process_state& state = process();
  const auto count = [&state, kind]() -> std::size_t {
    switch (kind) {
      case 0:  return state.streams.size();
      case 1:  return state.events.size();
      case 2:  return state.graphs.size();
      case 3:  return state.executables.size();
      case 4:  return state.modules.size();
      case 5:  return state.memory.count(memory_kind::device);
      case 6:  return state.memory.count(memory_kind::pinned);
      case 7:  return state.memory.count(memory_kind::imported);
      default: return 0;
    }
  };
  constexpr int retained_contexts = 8;
  if (kind == retained_contexts) {
    int retained = 0;
    for (const auto& entry : state.devices) {
      retained += entry->retained.load(std::memory_order_relaxed);
    }
    return retained;
  }
  return kind < 0 || kind > retained_contexts ? -1 : static_cast<int>(count());
}

}  // extern "C"

}  // namespace spark_comm::host
