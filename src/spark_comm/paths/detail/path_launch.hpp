// SPDX-License-Identifier: AGPL-3.0-only
// How an operation takes its way: what the launch of a path needs, next to the operation.
#pragma once

#include <spark_comm/comm/operation.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/kernels/rms_norm.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/paths/detail/path_set.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>

namespace spark_comm::detail {

/// An operation's way; `operation::path_state` points to one while it is submitted.
struct path_launch {
  path_set* paths = nullptr;
  chosen_path way = {};
  duration wait_limit = {};                      ///< How long its kernel waits for a peer.
  const kernels::rms_norm_call* norm = nullptr;  ///< For the fused paths.
};

[[nodiscard]] inline const path_launch& launch_state(const operation& op) noexcept {
  return *static_cast<const path_launch*>(op.path_state);
}

/// Runs the launches of a path, and keeps what they throw as the answer.
template <typename Launches>
[[nodiscard]] launch_result guarded(const char* function, const Launches& launches) noexcept {
  constexpr nccl::abi::result refused = nccl::abi::results::unhandled_cuda_error;
  try {
    return launches();
  } catch (const error& failure) {
    return {refused, function, std::make_shared<const error>(failure)};
  } catch (const std::exception& failure) {
    return {refused, function, std::make_shared<const error>(errc::internal, failure.what())};
  }
}

/// Throws: invalid_usage when this thread has a group open: the operation is more than one launch,
/// and NCCL's part of it would come last.
void require_no_group(const communicator_core& core, operation_kind kind);

/// The way of `op`, which takes `staging_bytes` in a segment.
[[nodiscard]] path_launch choose_way(const communicator_core& core,
                                     const operation& op,
                                     std::uint64_t staging_bytes);

/// Chooses the way of an all-reduce, and sets record, launch and state of `op` when it is not
/// NCCL's. In a group everything goes by NCCL, whose groups launch all or nothing. `state` has to
/// live as long as the submission.
void take_path(const communicator_core& core, operation& op, path_launch& state);

// The launches of the paths of all_reduce.
launch_result launch_through_segments(const nccl::api& call,
                                      nccl::abi::comm comm,
                                      const operation& op) noexcept;
launch_result launch_exchange(const nccl::api& call,
                              nccl::abi::comm comm,
                              const operation& op) noexcept;

}  // namespace spark_comm::detail
