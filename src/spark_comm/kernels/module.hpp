// SPDX-License-Identifier: AGPL-3.0-only
// The kernels, loaded on one device.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

namespace spark_comm::kernels {

namespace detail {
struct kernel_key;
struct launch_shape;
}  // namespace detail

/// Whether this build holds device code.
struct gpu_availability {
  bool is_built = false;
  std::string_view architectures;  ///< As given to the build: "90", or "80;90;...".
  std::string_view reason;         ///< Why, in words for a person.
};

[[nodiscard]] SPARK_COMM_API gpu_availability available_on_gpu() noexcept;

/// What a driver takes as kernels.
enum class image_kind : std::uint8_t {
  gpu,   ///< Device code, for the NVIDIA driver.
  host,  ///< Host equivalents, for the host runtime.
};

/// All kernels on one device. Copies share them.
/// Threads: any.
class SPARK_COMM_API kernel_module {
 public:
  /// Loads every kernel and finds its functions, so that no launch has to.
  /// Throws: not_supported when the build has no device code, or none for this device;
  /// device_failed, out_of_memory.
  [[nodiscard]] static kernel_module load(const cuda::device& where, image_kind kind);

  [[nodiscard]] const cuda::device& owner() const noexcept;

  [[nodiscard]] int multiprocessors() const noexcept;

  /// Launches a kernel with its one parameter. For the launchers of this layer.
  /// Order: enqueued on `s`. Capturable.
  template <typename Parameters>
  void launch(const detail::kernel_key& key,
              const detail::launch_shape& shape,
              Parameters parameters,
              cuda::stream_ref s) const {
    static_assert(std::is_trivially_copyable_v<Parameters>);
    launch_raw(key, shape, &parameters, s);
  }

 private:
  struct state;
  explicit kernel_module(std::shared_ptr<const state> shared);

  void launch_raw(const detail::kernel_key& key,
                  const detail::launch_shape& shape,
                  void* parameters,
                  cuda::stream_ref s) const;

  std::shared_ptr<const state> state_;
};

}  // namespace spark_comm::kernels
