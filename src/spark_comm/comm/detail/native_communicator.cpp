// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/native_communicator.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/config.hpp>
#include <spark_comm/nccl/library.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace spark_comm::detail {
namespace {

namespace results = nccl::abi::results;

bool is_healthy(nccl::abi::result code) noexcept {
  return code == results::success || code == results::in_progress;
}

}  // namespace

native_communicator::native_communicator(nccl::library library, cuda::device device)
    : library_(std::move(library)), device_(std::move(device)) {}

void native_communicator::settle(nccl::abi::comm comm,
                                 const deadline& until,
                                 const give_up_check& give_up) const {
  constexpr auto longest_pause = std::chrono::milliseconds{1};
  duration pause = std::chrono::microseconds{20};
  while (true) {
    nccl::abi::result state = results::success;
    library_.check(library_.table().ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
    if (state != results::in_progress) {
      library_.check(state, "ncclCommGetAsyncError");
      return;
    }
    give_up();
    if (until.has_passed()) {
      throw error{errc::timed_out, "NCCL is still in progress", {.deadline = until.span()}};
    }
    std::this_thread::sleep_for(std::min<duration>(pause, until.remaining()));
    pause = std::min<duration>(2 * pause, longest_pause);
  }
}

void native_communicator::connect(const native_setup& setup,
                                  const deadline& until,
                                  const give_up_check& give_up) {
  const cuda::device_scope current{device_};
  const nccl::api& call = library_.table();

  nccl::abi::config parent_config =
      nccl::make_config(setup.options, nccl::blocking_mode::non_blocking);
  parent_config.split_share = 1;
  nccl::abi::comm parent = nullptr;
  const nccl::abi::result init =
      call.ncclCommInitRankConfig(&parent, setup.world_size, setup.id, setup.rank, &parent_config);
  parent_.store(parent);
  if (!is_healthy(init)) {
    library_.check(init, "ncclCommInitRankConfig");
  }
  settle(parent, until, give_up);

  nccl::abi::config child_config = nccl::make_config(setup.options, nccl::blocking_mode::blocking);
  child_config.split_share = 1;
  const nccl::abi::result split =
      call.ncclCommSplit(parent, 0, setup.rank, &pending_child_, &child_config);
  if (!is_healthy(split)) {
    library_.check(split, "ncclCommSplit");
  }
  // The split answers "success" while it works in the background: the parent's state decides.
  settle(parent, until, give_up);
  const nccl::abi::comm child = std::exchange(pending_child_, nullptr);
  if (child == nullptr) {
    throw error{errc::internal, "ncclCommSplit ended well and made no communicator"};
  }
  child_.store(child);
  settle(child, until, give_up);
}

nccl::abi::result native_communicator::async_error() const noexcept {
  for (nccl::abi::comm comm : {child_.load(), parent_.load()}) {
    if (comm != nullptr) {
      nccl::abi::result state = results::success;
      const nccl::abi::result asked = library_.table().ncclCommGetAsyncError(comm, &state);
      if (!is_healthy(asked)) {
        return asked;
      }
      if (!is_healthy(state)) {
        return state;
      }
    }
  }
  return results::success;
}

void native_communicator::destroy(const deadline& until) {
  const cuda::device_scope current{device_};
  // A handle is dead whatever destroy answers, so it leaves the object before the call. The parent
  // stays in an abort's reach meanwhile: the two share a flag, so aborting it ends this call too.
  if (const nccl::abi::comm child = child_.exchange(nullptr); child != nullptr) {
    library_.check(library_.table().ncclCommDestroy(child), "ncclCommDestroy");
  }
  const nccl::abi::comm parent = parent_.exchange(nullptr);
  if (parent == nullptr) {
    return;  // there was none, or an abort has taken it
  }
  try {
    destroy_parent(parent, until);
  } catch (...) {
    parent_.store(parent);
    if (is_aborted_.load()) {
      abort();  // the one that came meanwhile found nothing
    }
    throw;
  }
}

void native_communicator::destroy_parent(nccl::abi::comm parent, const deadline& until) const {
  const nccl::api& call = library_.table();
  const nccl::abi::result finalize = call.ncclCommFinalize(parent);
  if (!is_healthy(finalize)) {
    library_.check(finalize, "ncclCommFinalize");
  }
  // Destroying one that is in progress or failed would leave this thread's group depth raised.
  settle(parent, until, [this] {
    if (is_aborted_.load()) {
      throw error{errc::aborted, "the communicator was aborted while it was being destroyed"};
    }
  });
  // The answer changes nothing: the handle is dead, and another try would be a second free.
  const nccl::abi::result destroyed = call.ncclCommDestroy(parent);
  if (destroyed != results::success) {
    library_.log().report(library_.to_error(destroyed, "ncclCommDestroy"),
                          "while destroying a communicator");
  }
}

void native_communicator::abort() noexcept {
  try {
    is_aborted_.store(true);
    const std::scoped_lock lock{abort_mutex_};
    const cuda::device_scope current{device_};
    abort_handle(child_.exchange(nullptr));
    abort_handle(parent_.exchange(nullptr));
    // After the parent, whose end waits for the thread that may still write it.
    abort_handle(std::exchange(pending_child_, nullptr));
  } catch (const std::exception& failure) {
    library_.log().report(failure, "while aborting a communicator");
  }
}

void native_communicator::abort_handle(nccl::abi::comm handle) const {
  if (handle == nullptr) {
    return;
  }
  // Which answer it gives changes nothing: the handle is dead and the communicator is gone.
  const nccl::abi::result answer = library_.table().ncclCommAbort(handle);
  if (answer != results::success) {
    library_.log().report(library_.to_error(answer, "ncclCommAbort"),
                          "while aborting a communicator");
  }
}

}  // namespace spark_comm::detail
