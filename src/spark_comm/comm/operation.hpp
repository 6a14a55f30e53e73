// SPDX-License-Identifier: AGPL-3.0-only
// An operation with its buffers and the native call that launches it.
#pragma once

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <memory>
#include <optional>

namespace spark_comm {

struct operation;

/// What a launch answers: NCCL's code and the function that gave it. A launch that is not NCCL's
/// alone says what went wrong by an error, with a code that is no success.
struct launch_result {
  nccl::abi::result code = nccl::abi::results::success;
  const char* function = "";
  std::shared_ptr<const error> failure = nullptr;

  /// A non-blocking communicator may still be launching it.
  [[nodiscard]] bool is_in_progress() const noexcept {
    return code == nccl::abi::results::in_progress;
  }

  [[nodiscard]] bool is_launched() const noexcept {
    return code == nccl::abi::results::success || is_in_progress();
  }
};

/// Makes the native calls of one operation. Called between the library's checks and its records,
/// possibly inside a native group; must not throw.
using native_launch = launch_result (*)(const nccl::api& call,
                                        nccl::abi::comm comm,
                                        const operation& op) noexcept;

/// Everything that a launch needs. The buffers are the caller's and outlive the operation.
struct operation {
  operation_record record = {};
  const void* in = nullptr;
  void* out = nullptr;
  cuda::abi::stream stream = nullptr;
  std::optional<duration> deadline = {};
  native_launch launch = nullptr;
  const void* path_state = nullptr;  ///< The path's own; read by `launch`, within `submit`.
};

}  // namespace spark_comm
