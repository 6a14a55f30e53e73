// SPDX-License-Identifier: AGPL-3.0-only
// A driver table that runs host equivalents of kernels in the call that launches them, in the
// calling thread: launchers can be tested, and compared with a device, without any runtime.
#pragma once

#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/kernels/module.hpp>

namespace spark_comm::test {

/// Device 0 with 4 multiprocessors; memory is the process's own. Stateless: any number of threads.
[[nodiscard]] cuda::driver inline_driver();

/// The host equivalents on it.
[[nodiscard]] kernels::kernel_module inline_kernels();

}  // namespace spark_comm::test
