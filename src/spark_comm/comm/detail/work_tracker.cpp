// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/work_tracker.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <algorithm>
#include <utility>

namespace spark_comm::detail {

work_tracker::work_tracker(cuda::device device) : device_(std::move(device)) {}

void work_tracker::mark(cuda::stream_ref s) {
  if (device_.is_capturing(s)) {
    return;
  }
  auto found = std::ranges::find(streams_, s, &marked_stream::stream);
  if (found == streams_.end()) {
    // A stream whose work is over may have been destroyed: its place is free again.
    found = std::ranges::find_if(streams_, [](const marked_stream& marked) {
      return !marked.is_pending || marked.event.poll() == progress::done;
    });
    if (found == streams_.end()) {
      streams_.push_back({.stream = s, .event = device_.create_event()});
      found = streams_.end() - 1;
    }
    found->stream = s;
  }
  found->event.record(s);
  found->is_pending = true;
}

progress work_tracker::poll() {
  for (marked_stream& marked : streams_) {
    if (marked.is_pending && marked.event.poll() == progress::pending) {
      return progress::pending;
    }
    marked.is_pending = false;
  }
  return progress::done;
}

}  // namespace spark_comm::detail
