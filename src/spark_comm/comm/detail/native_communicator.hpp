// SPDX-License-Identifier: AGPL-3.0-only
// The NCCL communicators behind one of ours: a non-blocking parent, whose init can be bounded, and
// a blocking child split from it, which launches fast. No policy: whoever calls decides when.
#pragma once

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/nccl/config.hpp>
#include <spark_comm/nccl/library.hpp>

#include <atomic>
#include <functional>
#include <mutex>

namespace spark_comm::detail {

/// What a native init needs.
struct native_setup {
  nccl::abi::unique_id id;
  int rank = 0;
  int world_size = 1;
  nccl::config_options options;
};

/// Asked between polls; throws to give up (the peer died, the communicator was aborted).
using give_up_check = std::function<void()>;

/// Owns parent and child.
///
/// Threads: one at a time; the owner sees to that. `abort` alone may come while another thread is
/// inside any of the others.
class native_communicator {
 public:
  native_communicator(nccl::library library, cuda::device device);
  native_communicator(const native_communicator&) = delete;
  native_communicator& operator=(const native_communicator&) = delete;
  native_communicator(native_communicator&&) = delete;
  native_communicator& operator=(native_communicator&&) = delete;
  ~native_communicator() = default;  // the owner has destroyed or aborted it; see `is_live`

  /// Makes parent and child.
  /// Throws: timed_out, what `give_up` throws, or the native error; then `abort` is still due.
  void connect(const native_setup& setup, const deadline& until, const give_up_check& give_up);

  /// The communicator that operations go to; null when not live.
  [[nodiscard]] nccl::abi::comm working() const noexcept { return child_.load(); }

  [[nodiscard]] bool is_live() const noexcept {
    return parent_.load() != nullptr || child_.load() != nullptr;
  }

  /// Polls until the last call on `comm` is no longer in progress.
  /// Throws: timed_out; what `give_up` throws; the asynchronous error.
  void settle(nccl::abi::comm comm, const deadline& until, const give_up_check& give_up) const;

  /// Success or in-progress when healthy, NCCL's asynchronous error otherwise.
  [[nodiscard]] nccl::abi::result async_error() const noexcept;

  /// Waits for its work and frees. Blocks as long as NCCL does, or until it is aborted.
  /// Throws: timed_out, aborted, or the native error; then `abort` is still due.
  void destroy(const deadline& until);

  /// Frees without the peers. Blocks as long as NCCL does. Idempotent.
  void abort() noexcept;

 private:
  void abort_handle(nccl::abi::comm handle) const;
  void destroy_parent(nccl::abi::comm parent, const deadline& until) const;

  nccl::library library_;
  cuda::device device_;
  // Whoever takes a handle out is the only one to end it.
  std::atomic<nccl::abi::comm> parent_{nullptr};
  std::atomic<nccl::abi::comm> child_{nullptr};
  std::atomic<bool> is_aborted_{false};
  std::mutex abort_mutex_;
  // NCCL writes the child's pointer from a thread of its own: it must not move meanwhile.
  nccl::abi::comm pending_child_ = nullptr;
};

}  // namespace spark_comm::detail
