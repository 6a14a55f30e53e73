// SPDX-License-Identifier: AGPL-3.0-only
// A borrowed stream: how an engine's own CUstream or cudaStream_t enters the library.
#pragma once

#include <spark_comm/cuda/abi.hpp>

#include <cstddef>

namespace spark_comm::cuda {

/// A stream that somebody else owns; valid as long as that stream is.
class stream_ref {
 public:
  stream_ref(abi::stream handle) noexcept  // NOLINT(google-explicit-constructor): it is the point
      : handle_(handle) {}

  stream_ref(int) = delete;
  stream_ref(std::nullptr_t) = delete;

  /// The default stream of the communicator's device (CUDA's null stream).
  [[nodiscard]] static stream_ref default_stream() noexcept {
    return stream_ref{static_cast<abi::stream>(nullptr)};
  }

  [[nodiscard]] abi::stream get() const noexcept { return handle_; }

  friend bool operator==(stream_ref, stream_ref) = default;

 private:
  abi::stream handle_;
};

}  // namespace spark_comm::cuda
