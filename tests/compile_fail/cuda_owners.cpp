// SPDX-License-Identifier: AGPL-3.0-only
// Owners of streams, memory and scopes cannot be copied, and answers cannot be forgotten or folded
// into a truth value.
#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>

#include <chrono>
#include <utility>

using namespace spark_comm::cuda;

void fragment(const device& where, stream& s, device_buffer& buffer) {
  const device_scope scope{where};
  const stream moved = std::move(s);
  const device_buffer memory = std::move(buffer);
  const bool is_done = moved.poll() == spark_comm::progress::done;
  const auto answer = moved.wait(std::chrono::seconds{1});
  static_cast<void>(is_done);
  static_cast<void>(answer);
#ifdef CASE_copy_stream
  const stream made = moved;
#endif
#ifdef CASE_copy_buffer
  const device_buffer made = memory;
#endif
#ifdef CASE_copy_scope
  const device_scope made = scope;
#endif
#ifdef CASE_move_scope
  const device_scope made = std::move(scope);
#endif
#ifdef CASE_unnamed_scope
  device_scope{where};
#endif
#ifdef CASE_forgotten_poll
  moved.poll();
#endif
#ifdef CASE_forgotten_wait
  moved.wait(std::chrono::seconds{1});
#endif
#ifdef CASE_poll_as_bool
  if (moved.poll()) {
    return;
  }
#endif
}
