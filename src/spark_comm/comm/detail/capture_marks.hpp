// SPDX-License-Identifier: AGPL-3.0-only
// How the watchdog sees into graphs: a captured operation writes a byte of pinned memory when it
// begins to run and when it has ended.
#pragma once

#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/supervise/in_flight.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace spark_comm::detail {

/// Bytes, one a captured operation. They cannot be used again, because nobody tells when a graph is
/// gone, and must live as long as a graph with an operation of the communicator may run.
///
/// Threads: one captures (`begin`, `end`); any asks a probe, one at a time for a mark.
class capture_marks {
 public:
  static constexpr std::size_t most = 65'536;

  explicit capture_marks(const cuda::device& where);

  /// Captures the write that says "runs". None when all marks are taken. Throws: device_failed.
  [[nodiscard]] std::optional<std::size_t> begin(cuda::stream_ref s);

  /// Captures the write that says "has ended".
  void end(std::size_t mark, cuda::stream_ref s) const;

  /// Answers `pending` while the run goes on that it saw at the last question, else `done`.
  [[nodiscard]] completion_probe probe(std::size_t mark) const noexcept;

 private:
  void write(std::size_t mark, std::uint8_t value, cuda::stream_ref s) const;

  cuda::device device_;
  cuda::pinned_buffer bytes_;
  std::size_t taken_ = 0;
};

}  // namespace spark_comm::detail
