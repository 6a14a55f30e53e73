// SPDX-License-Identifier: AGPL-3.0-only
#include "mps.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <system_error>

namespace spark_comm::app {

std::string mps_control_pipe(const variable_reader& read_variable) {
  const std::string folder = read_variable("CUDA_MPS_PIPE_DIRECTORY");
  return (folder.empty() ? std::string{"/tmp/nvidia-mps"} : folder) + "/control";
}

bool is_mps_running(const std::string& control_pipe) {
  std::error_code unreadable;
  return std::filesystem::is_fifo(control_pipe, unreadable);
}

std::string mps_advice(const std::string& control_pipe) {
  return fmt::format(
      "MPS is not running (no {}): ranks that share a GPU take turns on it, and every "
      "collective costs milliseconds; start it with: nvidia-cuda-mps-control -d",
      control_pipe);
}

}  // namespace spark_comm::app
