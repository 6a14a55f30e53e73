// SPDX-License-Identifier: AGPL-3.0-only
// The form in which the host runtime takes kernels: what its cuModuleLoadData expects in place of
// GPU code. The layout is the host runtime's (its host_module.hpp); a layer below it cannot include
// that.
#pragma once

#include <cstdint>
#include <memory>

namespace spark_comm::kernels::detail {

struct host_dimensions {
  unsigned int x = 1;
  unsigned int y = 1;
  unsigned int z = 1;
};

/// Runs the whole grid in one call. `arguments` holds one pointer to each parameter.
using host_kernel_function = void (*)(void** arguments,
                                      host_dimensions grid,
                                      host_dimensions block);

/// Bits of host_kernel_entry::flags.
inline constexpr std::uint32_t host_kernel_may_wait = 0;
inline constexpr std::uint32_t host_kernel_never_waits = 1;

struct host_kernel_entry {
  const char* name;
  host_kernel_function function;
  const std::uint32_t* argument_bytes;  ///< Size of each parameter, in order.
  std::uint32_t argument_count;
  std::uint32_t flags;
};

/// "spkhost1", read as a little-endian number.
inline constexpr std::uint64_t host_module_magic = 0x3174736f686b7073U;

struct host_module_image {
  std::uint64_t magic;
  std::uint64_t count;
  const host_kernel_entry* entries;
};

/// The host equivalents of all kernels, under the same names. A module made of it points into it.
[[nodiscard]] std::shared_ptr<const host_module_image> make_host_image();

}  // namespace spark_comm::kernels::detail
