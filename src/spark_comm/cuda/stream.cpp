// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/handles.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <utility>

namespace spark_comm::cuda {

stream::stream(device owner, unique_stream handle)
    : owner_(std::move(owner)), handle_(std::move(handle)) {}

stream_ref stream::ref() const {
  if (!handle_) {
    throw error{errc::invalid_usage, "the stream was moved from"};
  }
  return handle_.get();
}

progress stream::poll() const {
  const stream_ref self = ref();
  return owner_.poll(self);
}

wait_result stream::wait(duration limit) const {
  const stream_ref self = ref();
  return owner_.wait(self, limit);
}

void stream::wait_for(const event& e) const {
  const stream_ref self = ref();
  const abi::event point = e.get();
  if (point == nullptr) {
    throw error{errc::invalid_usage, "the event was moved from"};
  }
  if (!e.is_recorded()) {
    // CUDA would let the stream go on at once, as if the point had been reached.
    throw error{errc::invalid_usage, "the event was never recorded"};
  }
  const driver& loaded = owner_.loaded_driver();
  loaded.check(loaded.table().cuStreamWaitEvent(self.get(), point, 0), "cuStreamWaitEvent");
}

void stream::launch_host(abi::host_function function, void* user_data) const {
  const stream_ref self = ref();
  if (function == nullptr) {
    throw error{errc::invalid_argument, "the host function is null"};
  }
  const driver& loaded = owner_.loaded_driver();
  loaded.check(loaded.table().cuLaunchHostFunc(self.get(), function, user_data),
               "cuLaunchHostFunc");
}

}  // namespace spark_comm::cuda
