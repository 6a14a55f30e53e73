// SPDX-License-Identifier: AGPL-3.0-only
#include "init.hpp"

#include "bootstrap.hpp"
#include "communicator.hpp"
#include "config.hpp"
#include "group.hpp"
#include "last_error.hpp"
#include "nccl_abi.hpp"
#include "segment_layout.hpp"
#include "unique_ids.hpp"

#include <atomic>
#include <memory>
#include <utility>

namespace spark_comm::host::nccl {
namespace {

int check_init(ncclComm** out, const arrival& self) {
  if (out == nullptr) {
    return refuse(results::invalid_argument, "CommInitRank : comm argument is NULL");
  }
  if (self.world_size < 1 || self.world_size > most_ranks) {
    return refuse(results::invalid_argument,
                  "Invalid rank count {}: the host runtime takes 1 to {}",
                  self.world_size,
                  most_ranks);
  }
  if (self.rank < 0 || self.rank >= self.world_size) {
    return refuse(
        results::invalid_argument, "Invalid rank requested : {}/{}", self.rank, self.world_size);
  }
  return results::success;
}

}  // namespace

int add_init(
    ncclComm** out, const unique_id& id, arrival self, const config* options, init_mode mode) {
  if (const int code = check_init(out, self); code != results::success) {
    return code;
  }
  *out = nullptr;
  settings chosen;
  if (const int code = read_config(options, {}, chosen); code != results::success) {
    return code;
  }
  const bool is_blocking = mode == init_mode::synchronous || chosen.is_blocking;
  auto comm = std::make_shared<communicator>(
      self, std::move(chosen), std::make_shared<std::atomic<bool>>(false));
  comm->state.begin();
  // The handle is there before the init is over, so that another thread can abort a waiting one.
  ncclComm* const handle = publish(comm);
  // Release: another thread may take the handle from there while this one waits for peers.
  std::atomic_ref{*out}.store(handle, std::memory_order_release);
  return add_job({
      .owner = comm,
      .is_blocking = is_blocking,
      .work = [comm, address = address_of(id)] { return comm->join(address); },
      .conclude =
          [comm, handle, out, is_blocking](int code) {
            if (code != results::success && is_blocking) {
              retire(handle);
              std::atomic_ref{*out}.store(nullptr, std::memory_order_release);
            }
            comm->state.finish(code);
          },
  });
}

}  // namespace spark_comm::host::nccl
