// SPDX-License-Identifier: AGPL-3.0-only
// The ways that one communicator has: table, kernels, buffers of each stream, and what was agreed
// about them at the join.
#pragma once

#include <spark_comm/comm/detail/path_support.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/module.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/peer_segment.hpp>
#include <spark_comm/paths/detail/kernel_words.hpp>
#include <spark_comm/paths/detail/path_offer.hpp>
#include <spark_comm/paths/detail/peer_memory.hpp>
#include <spark_comm/paths/detail/stream_slots.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/rendezvous/world.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm::detail {

class communicator_core;

/// Where an operation goes.
struct chosen_path {
  path_kind kind = path_kind::nccl;
  std::size_t slot = 0;  ///< Of the stream's buffers; means nothing for `nccl`.
};

/// Threads: `choose` and what launches need by the issuing thread; see `path_support` for the rest.
class path_set final : public path_support {
 public:
  path_set(const runtime& loaded,
           const cuda::device& device,
           const world& place,
           const join_options& options);

  // Life.
  [[nodiscard]] rendezvous::fact agreement() const override;
  void connect(rendezvous::session& line, const deadline& until) override;
  [[nodiscard]] std::optional<native_failure> failure() const override;
  void abort() noexcept override;
  [[nodiscard]] bool is_shared() const noexcept override;
  void disconnect() noexcept override;
  void release() noexcept override;

  // For operations.
  /// The way of an operation on `s`; a stream that exchanges for the first time gets its buffers.
  [[nodiscard]] chosen_path choose(const path_query& asked, cuda::stream_ref s);

  [[nodiscard]] const path_table& table() const noexcept { return table_; }

  [[nodiscard]] const path_capabilities& capabilities() const noexcept { return capabilities_; }

  /// Loaded at the first use where the join had no need of them.
  /// Throws: not_supported when there are none for this device.
  [[nodiscard]] const kernels::kernel_module& kernels();

  [[nodiscard]] kernels::peer_segments segments(std::size_t slot, duration wait_limit) const;

  /// One of two streams of its own, in turn; made at the first use.
  [[nodiscard]] const cuda::stream& next_own_stream();

  /// Where the peer's message of an exchange arrives.
  [[nodiscard]] void* receive_buffer(std::size_t slot) const noexcept;

  [[nodiscard]] const world& place() const noexcept { return place_; }

 private:
  [[nodiscard]] bool is_wanted() const noexcept;
  [[nodiscard]] bool may_be_wanted() const noexcept;
  [[nodiscard]] path_offer make_offer();
  [[nodiscard]] std::vector<path_offer> share(rendezvous::session& line,
                                              const path_offer& mine,
                                              const deadline& until) const;
  void connect_peers(rendezvous::session& line,
                     const std::vector<path_offer>& offers,
                     const deadline& until);
  [[nodiscard]] path_offer open_peers(const std::vector<path_offer>& offers);
  void say_without(const std::string& what, const missing_part& missing) const;

  runtime loaded_;
  cuda::device device_;
  world place_;
  std::string name_;
  path_options options_;
  path_table table_;
  kernels::segment_limits limits_;
  path_capabilities capabilities_;
  std::optional<kernels::kernel_module> kernels_;
  std::optional<kernel_words> words_;  // kept to the end: `abort` may come at any time
  std::mutex slots_mutex_;             // two threads that issue at a time are a mistake, not a race
  stream_slots slots_;
  std::optional<peer_memory> peers_;
  std::optional<cuda::device_buffer> receive_;
  std::array<std::optional<cuda::stream>, 2> own_streams_;
  std::size_t own_streams_used_ = 0;
};

/// The paths of a communicator.
[[nodiscard]] path_set& paths_of(const communicator_core& core) noexcept;

}  // namespace spark_comm::detail
