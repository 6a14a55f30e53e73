// SPDX-License-Identifier: AGPL-3.0-only
// Memory limits and areas that NCCL and RDMA live from.
#include "doctor/checks.hpp"
#include "doctor/finding.hpp"
#include "doctor/snapshot.hpp"

#include <fmt/format.h>

namespace spark_comm::app::doctor {
namespace {

constexpr long long small_shm_bytes = 256LL << 20U;
constexpr long long mebibyte = 1LL << 20U;

}  // namespace

findings check_system(const machine_snapshot& machine) {
  findings out;
  if (!machine.roce.empty() && machine.locked_bytes) {
    out.push_back(
        {.how = grade::warning,
         .check = "system.locked_memory",
         .seen = fmt::format("locked memory is limited to {} KiB", *machine.locked_bytes / 1024),
         .means = "RDMA locks the buffers that it sends from; registration fails with "
                  "'cannot allocate memory' beyond that.",
         .remedy = "ulimit -l unlimited (for good: '* - memlock unlimited' in "
                   "/etc/security/limits.conf); in a container: --ulimit memlock=-1"});
  }
  if (!machine.gpus.empty() && machine.shm_bytes && *machine.shm_bytes < small_shm_bytes) {
    out.push_back(
        {.how = grade::warning,
         .check = "system.shm",
         .seen = fmt::format("/dev/shm holds {} MiB", *machine.shm_bytes / mebibyte),
         .means = "NCCL keeps buffers between the GPUs of a machine there, and fails or "
                  "crashes when it is full.",
         .remedy = "sudo mount -o remount,size=8G /dev/shm; in a container: --shm-size=8g"});
  }
  if (machine.cma_total_kb && machine.cma_free_kb && *machine.cma_free_kb > *machine.cma_total_kb) {
    out.push_back({.how = grade::warning,
                   .check = "system.contiguous_memory",
                   .seen = fmt::format("{} kB of {} kB of the contiguous memory area are free",
                                       *machine.cma_free_kb,
                                       *machine.cma_total_kb),
                   .means = "The kernel holds memory back that it does not account for; RDMA "
                            "registration has failed with 'cannot allocate memory' in that state.",
                   .remedy = "add kho=off to the kernel's command line, and start again"});
  } else if (machine.is_spark() && machine.cma_total_kb == 0) {
    out.push_back({.how = grade::note,
                   .check = "system.contiguous_memory",
                   .seen = "the kernel keeps no contiguous memory area",
                   .means = "Fine for most; one cluster of Sparks traced slow collectives to it.",
                   .remedy = "only if collectives are slow: a kernel of DGX OS, or cma=256M on its "
                             "command line"});
  }
  return out;
}

}  // namespace spark_comm::app::doctor
