// SPDX-License-Identifier: AGPL-3.0-only
// Whether the CUDA Multi-Process Service runs: without it, processes that share a GPU take turns.
#pragma once

#include <functional>
#include <string>

namespace spark_comm::app {

/// Reads a variable; empty when it is unset.
using variable_reader = std::function<std::string(const std::string& name)>;

/// Where its control pipe lies: in `CUDA_MPS_PIPE_DIRECTORY`, by default /tmp/nvidia-mps.
[[nodiscard]] std::string mps_control_pipe(const variable_reader& read_variable);

/// Whether that pipe is there.
[[nodiscard]] bool is_mps_running(const std::string& control_pipe);

/// What ranks that share a GPU without it have to expect, and how it is started.
[[nodiscard]] std::string mps_advice(const std::string& control_pipe);

}  // namespace spark_comm::app
