// SPDX-License-Identifier: AGPL-3.0-only
// The form in which kernels are given to the host runtime: what cuModuleLoadData takes in place of
// GPU code. Depends on nothing, so that whoever makes kernels can include it.
#pragma once

#include <cstdint>

namespace spark_comm::host {

struct host_dimensions {
  unsigned int x = 1;
  unsigned int y = 1;
  unsigned int z = 1;
};

/// A kernel as a host function: runs the whole grid in one call, in stream order.
///
/// `arguments` is what cuLaunchKernel was given: one pointer to each parameter. The parameters are
/// copied at the launch according to `argument_bytes`.
/// Threads: a worker of the host runtime or a thread that synchronizes. It must not call the
/// driver.
using host_kernel_function = void (*)(void** arguments,
                                      host_dimensions grid,
                                      host_dimensions block);

/// What the host runtime may assume about a kernel; a bit set.
enum host_kernel_flags : std::uint32_t {
  host_kernel_default = 0,
  /// Never waits for another rank, thread or stream: a query may run it too.
  host_kernel_never_waits = 1,
};

struct host_kernel_entry {
  const char* name;
  host_kernel_function function;
  /// Size of each parameter, in order; they are copied at the launch.
  const std::uint32_t* argument_bytes;
  std::uint32_t argument_count;
  std::uint32_t flags;  ///< host_kernel_flags
};

/// "spkhost1", read as a little-endian number. No fat binary, ELF file or PTX text begins so.
inline constexpr std::uint64_t host_module_magic = 0x3174736f686b7073U;

/// A module image. Has to stay valid, with everything it points to, until the module is unloaded.
struct host_module_image {
  std::uint64_t magic;
  std::uint64_t count;
  const host_kernel_entry* entries;
};

}  // namespace spark_comm::host
