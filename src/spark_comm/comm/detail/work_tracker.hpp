// SPDX-License-Identifier: AGPL-3.0-only
// Knows, without asking the program, whether the work that was launched is over: one event a
// stream, recorded after each launch.
#pragma once

#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <vector>

namespace spark_comm::detail {

/// Threads: one at a time; the communicator's gate sees to that.
class work_tracker {
 public:
  explicit work_tracker(cuda::device device);

  /// Marks what has been launched on `s` so far. A stream that is being captured is left alone.
  void mark(cuda::stream_ref s);

  /// Whether everything marked is over. Forgets it then.
  [[nodiscard]] progress poll();

 private:
  struct marked_stream {
    cuda::stream_ref stream;
    cuda::event event;
    bool is_pending = false;
  };

  cuda::device device_;
  std::vector<marked_stream> streams_;  // few: an engine launches on two or three
};

}  // namespace spark_comm::detail
