// SPDX-License-Identifier: AGPL-3.0-only
// The host equivalents: one function a kernel and element type, in the form of the host runtime.
#pragma once

#include <spark_comm/kernels/detail/host_image.hpp>

namespace spark_comm::kernels::host {

using detail::host_dimensions;

// T: float, float16 or bfloat16; instantiated in the files of the same names.

template <typename T>
void add(void** arguments, host_dimensions grid, host_dimensions block);

template <typename T>
void rms_norm(void** arguments, host_dimensions grid, host_dimensions block);

/// Waits for other ranks, bounded: runs on a thread that may be held.
template <typename T>
void one_shot(void** arguments, host_dimensions grid, host_dimensions block);

/// As one_shot.
template <typename T>
void one_shot_rms_norm(void** arguments, host_dimensions grid, host_dimensions block);

/// As one_shot.
template <typename T>
void two_shot(void** arguments, host_dimensions grid, host_dimensions block);

/// As one_shot.
template <typename T>
void low_latency(void** arguments, host_dimensions grid, host_dimensions block);

}  // namespace spark_comm::kernels::host
