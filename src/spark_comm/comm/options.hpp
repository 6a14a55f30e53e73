// SPDX-License-Identifier: AGPL-3.0-only
// What a program may say when it joins a communicator or issues an operation.
#pragma once

#include <spark_comm/comm/path_options.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/nccl/config.hpp>
#include <spark_comm/rendezvous/secret.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/supervise/options.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace spark_comm {

/// Whether ranks may use the same device.
enum class device_sharing : std::uint8_t {
  refused,  ///< Two ranks on one device are a mistake: mismatch at the join.
  allowed,  ///< Wanted, as in tests on one GPU.
};

/// How to join.
struct join_options {
  /// Name in errors and traces.
  std::string name = "world";
  /// By when every rank has to be there.
  duration deadline = std::chrono::seconds{30};
  /// Default limit of an operation: once from its submission to its start, and once from there to
  /// its end, so that waiting behind a long kernel is not taken for being stuck.
  duration operation_deadline = std::chrono::seconds{60};
  /// Limit of a native abort; what has not come back by then is left behind and reported.
  duration abort_deadline = std::chrono::milliseconds{1500};
  /// Device ordinal; unset: rank modulo the number of devices.
  std::optional<int> device = {};
  device_sharing sharing = device_sharing::refused;
  /// What the ranks prove to each other and encrypt their meeting with; needed unless all meet on
  /// loopback. From SPARK_COMM_KEY_FILE or SPARK_COMM_KEY unless set here.
  std::optional<rendezvous::secret> key = rendezvous::secret::from_environment();
  /// Heartbeats, mismatch check and flight record; from the environment unless set here.
  supervise_options supervise = supervise_options::from_environment();
  /// Other ways than NCCL; from the environment unless set here.
  path_options paths = path_options::from_environment();
  /// Tuning of the NCCL communicator.
  nccl::config_options nccl = {};
  /// Whether this process is one of the first, or comes in the place of a rank that was lost: then
  /// rank 0 calls the others, too. `world::address` is where those who are left listen.
  rendezvous::entry way_in = rendezvous::entry::founding;
  /// Called on the head once it listens, with the address including the real port; in a reconnect
  /// on the rank that takes the lost head's part.
  std::function<void(const std::string& address)> on_listening = {};
};

/// How to reconnect.
struct reconnect_options {
  /// By when every rank has to be there.
  duration deadline = std::chrono::seconds{30};
  /// With a new process in each lost rank's place, or with those alone that are left: then ranks
  /// are numbered anew, in their old order, and the world is smaller from now on. The same on all.
  rendezvous::membership who = rendezvous::membership::whole_world;
};

/// What a single operation may override.
struct call_options {
  /// Limit of this operation; unset: the communicator's.
  std::optional<duration> deadline = {};
};

}  // namespace spark_comm
