// SPDX-License-Identifier: AGPL-3.0-only
#include "rank_session.hpp"

#include "bench_options.hpp"
#include "child_process.hpp"
#include "exit_code.hpp"
#include "memory_estimate.hpp"
#include "rank_report.hpp"

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/nccl/library.hpp>
#include <spark_comm/rendezvous/world.hpp>

#include <cerrno>
#include <cstddef>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace spark_comm::app {
namespace {

std::string cuda_version_text(int version) {
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

ready_report ready(const rank_session& session, std::size_t rows) {
  const runtime& loaded = session.loaded;
  const cuda::device_info device = session.comm.device().info();
  return {.rank = session.comm.rank(),
          .world_size = session.comm.world_size(),
          .runtime = std::string{name_of(loaded.kind())},
          .description = loaded.description(),
          .device = device.name,
          .driver_version = cuda_version_text(loaded.driver().version()),
          .nccl_version = nccl::version_text(loaded.library().version()),
          .rows = rows};
}

}  // namespace

void require_started_as_rank() {
  struct stat kind{};
  if (::fstat(report_descriptor, &kind) != 0 || !S_ISFIFO(kind.st_mode)) {
    throw usage_failure("rank: this verb is for processes that bench and check start themselves");
  }
}

void send_report(const rank_report& report) {
  const std::string line = encode(report) + "\n";
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(report_descriptor, rest.data(), rest.size());
    if (written > 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      throw failure(exit_code::failed, "the process that started this rank does not listen");
    }
  }
}

runtime load_runtime(runtime_kind kind, const std::string& nccl_library) {
  runtime_options options = runtime_options::from_environment();
  if (!nccl_library.empty()) {
    options.nccl_library = nccl_library;
  }
  return runtime::load(kind, options);
}

rank_session join_job(const job_options& options, const planner& plan) {
  const runtime loaded = load_runtime(options.runtime, options.nccl_library);
  const world place = world::from_environment();
  const int devices = loaded.driver().device_count();
  require_devices(place.world_size, devices, options.share_gpu);

  const int ordinal = place.rank % devices;
  const rank_plan needed = plan(loaded.kind());
  const bool is_host = loaded.kind() == runtime_kind::host;
  const cuda::device device = cuda::device::open(loaded.driver(), ordinal);
  require_memory(
      {.per_rank = needed.buffer_bytes,
       .ranks_sharing =
           is_host ? place.world_size : ranks_on_device_of(place.rank, place.world_size, devices)},
      device.memory().free_bytes,
      is_host ? "this machine" : fmt::format("device {}", ordinal));

  join_options how;
  how.name = "spark-comm";
  how.deadline = options.deadline;
  how.operation_deadline = options.deadline;
  how.device = ordinal;
  how.sharing = options.share_gpu ? device_sharing::allowed : device_sharing::refused;
  how.paths = options.paths.value_or(how.paths);
  how.on_listening = [](const std::string& address) {
    send_report(listening_report{.address = address});
  };
  rank_session session{.loaded = loaded, .comm = communicator::join(loaded, place, how)};
  send_report(ready(session, needed.rows));
  return session;
}

int ranks_on_device_of(int rank, int world_size, int devices) noexcept {
  // Ranks r with r % devices == rank % devices.
  return (world_size - rank % devices + devices - 1) / devices;
}

void require_devices(int ranks, int devices, bool share_gpu) {
  if (devices == 0) {
    throw failure(exit_code::not_available, "no device is visible");
  }
  if (ranks > devices && !share_gpu) {
    throw usage_failure(fmt::format(
        "--ranks {} needs {} devices, but {} {} visible: lower --ranks, or let ranks use "
        "the same device with --share-gpu",
        ranks,
        ranks,
        devices,
        devices == 1 ? "is" : "are"));
  }
}

}  // namespace spark_comm::app
