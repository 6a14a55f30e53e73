// SPDX-License-Identifier: AGPL-3.0-only
// Which driver and NCCL a program runs on: NVIDIA's, or the host runtime that is bundled.
#pragma once

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/nccl/library.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace spark_comm {

/// Which runtime to load.
enum class runtime_kind : std::uint8_t {
  automatic,  ///< NVIDIA's if driver, a device and NCCL are there, else the host runtime.
  nvidia,     ///< libcuda.so.1 and NCCL; an error when one of them is missing.
  host,       ///< The bundled CPU runtime.
};

[[nodiscard]] SPARK_COMM_API std::string_view name_of(runtime_kind kind) noexcept;

/// Where libraries are looked for. Every field is also a variable of the environment.
struct SPARK_COMM_API runtime_options {
  /// NCCL by path; `SPARK_COMM_NCCL_LIBRARY`; empty: `libnccl.so.2`.
  std::string nccl_library = {};
  /// Host runtime by path; `SPARK_COMM_HOST_LIBRARY`; empty: beside this library, then
  /// `libspark_comm_host.so` in the loader's own places.
  std::string host_library = {};
  /// Where warnings go.
  diagnostics log = {};

  /// The variables named above, read now.
  [[nodiscard]] static runtime_options from_environment();
};

/// A loaded pair of driver and NCCL. Copies share it; the libraries stay loaded for ever.
/// Threads: any.
class SPARK_COMM_API runtime {
 public:
  /// Throws: not_supported when the kind asked for is not there, with what was tried and why it
  /// failed; invalid_argument for a value outside the enumeration.
  /// Automatic reports its choice and the reason once, as `info`.
  [[nodiscard]] static runtime load(
      runtime_kind kind, const runtime_options& options = runtime_options::from_environment());

  /// A runtime of the given parts, for tests.
  [[nodiscard]] static runtime from_parts(runtime_kind kind,
                                          cuda::driver driver,
                                          nccl::library library);

  /// `nvidia` or `host`, never `automatic`.
  [[nodiscard]] runtime_kind kind() const noexcept;
  [[nodiscard]] const cuda::driver& driver() const noexcept;
  [[nodiscard]] const nccl::library& library() const noexcept;
  [[nodiscard]] const diagnostics& log() const noexcept;

  /// One line: which runtime, versions, files, and why it was chosen.
  [[nodiscard]] const std::string& description() const noexcept;

 private:
  struct state;

  explicit runtime(std::shared_ptr<const state> shared) : state_(std::move(shared)) {}

  std::shared_ptr<const state> state_;
};

}  // namespace spark_comm
