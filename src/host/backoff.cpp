// SPDX-License-Identifier: AGPL-3.0-only
#include "backoff.hpp"

#include "wake_signal.hpp"

#include <cstdint>
#include <sched.h>

namespace spark_comm::host {

namespace {

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // isb takes about as long as x86's pause; yield is a no-op on these cores.
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace

void backoff::pause(wake_signal& wake, std::uint32_t seen) const noexcept {
  const wait_step step = next(clock::now());
  switch (step.kind) {
    case wait_kind::spin:  relax(); return;
    case wait_kind::yield: sched_yield(); return;
    case wait_kind::nap:   wake.wait(seen, step.nap); return;
  }
}

}  // namespace spark_comm::host
