// SPDX-License-Identifier: AGPL-3.0-only
// What the layer of paths keeps with a communicator. The communicator knows when things happen, the
// layer above knows what: this is the seam between them.
#pragma once

#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/rendezvous/world.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <memory>
#include <optional>

namespace spark_comm::detail {

/// Life of the paths of one generation of a communicator.
class path_support {
 public:
  path_support() = default;
  path_support(const path_support&) = delete;
  path_support& operator=(const path_support&) = delete;
  path_support(path_support&&) = delete;
  path_support& operator=(path_support&&) = delete;
  virtual ~path_support() = default;

  /// What must be the same on all ranks.
  [[nodiscard]] virtual rendezvous::fact agreement() const = 0;

  /// Agrees with the others of `line`, who may be fewer than the world at first, on the ways there
  /// are. Who: every rank, between meeting and the start
  /// of the session. A way that is not there for one rank is there for none, and is no error.
  virtual void connect(rendezvous::session& line, const deadline& until) = 0;

  /// What a kernel reported since; none while all is well. Threads: any.
  [[nodiscard]] virtual std::optional<native_failure> failure() const = 0;

  /// Ends all kernels that wait for a peer, now and later. Threads: any.
  virtual void abort() noexcept = 0;

  /// Whether this rank's memory is mapped by others.
  [[nodiscard]] virtual bool is_shared() const noexcept = 0;

  /// Lets go of the peers' memory. Who: every rank, once its work is over, and before any rank
  /// `release`s.
  virtual void disconnect() noexcept = 0;

  /// Frees everything; may block as long as a kernel waits. Idempotent.
  virtual void release() noexcept = 0;
};

/// Defined by the layer of paths. Reads the table; starts nothing.
/// Throws: invalid_argument for a table that is none; system_failed when it cannot be read.
[[nodiscard]] std::shared_ptr<path_support> make_path_support(const runtime& loaded,
                                                              const cuda::device& device,
                                                              const world& place,
                                                              const join_options& options);

}  // namespace spark_comm::detail
