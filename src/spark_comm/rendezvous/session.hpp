// SPDX-License-Identifier: AGPL-3.0-only
// How ranks meet and stay in touch: a trusted connection between every two ranks, apart from the
// data path. It carries bytes and knows no NCCL.
#pragma once

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/secret.hpp>
#include <spark_comm/rendezvous/world.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace spark_comm::rendezvous {

using bytes = std::vector<std::byte>;

/// What must hold between the values that the ranks give to one fact.
enum class fact_rule : std::uint8_t {
  equal,     ///< Another value than the head's is a mismatch, on every rank.
  reported,  ///< A difference is reported once, on both ranks, and does no harm.
  distinct,  ///< The same value on two ranks is a mismatch, on every rank.
};

/// Something that a rank says about itself in its hello, such as the version of its library.
struct fact {
  std::string name;
  std::string value;
  fact_rule rule = fact_rule::equal;
  /// Said beside the value and not compared, such as the file that a version was read from.
  std::string note = {};
};

/// Who a meeting waits for.
enum class membership : std::uint8_t {
  whole_world,  ///< Every rank; a new process may come in the place of a lost one.
  survivors,    ///< The ranks of a reunion that are still there; they are numbered anew, in order.
};

/// What a rank brings to the meeting.
struct hello {
  /// One more than the last generation this rank was in. The highest that any rank brings is the
  /// generation of all.
  std::uint64_t generation = 1;
  std::vector<fact> facts = {};
};

/// A port at which a rank is found by ranks that knew it in an earlier session.
class held_port;

/// What ranks that were together before know of each other.
struct reunion {
  std::vector<std::string> listeners;     ///< `session::listener_addresses` of the last session.
  std::shared_ptr<const held_port> port;  ///< `session::take_port` of the last session.
  membership who = membership::whole_world;
};

/// What a rank does at the address of its place.
enum class entry : std::uint8_t {
  founding,   ///< Rank 0 listens there, the others call.
  replacing,  ///< Every rank calls: ranks that were left over, and meet again, listen.
};

/// How to meet.
struct meeting_options {
  /// Called on the head once it listens, with the address including the real port.
  std::function<void(const std::string& address)> on_listening = {};
  /// Encrypts every connection and lets nobody in who does not hold it. Needed unless all ranks
  /// meet on loopback.
  std::optional<secret> key = {};
  diagnostics log = {};
  /// Asked to stop, the meeting and the session's collective calls end at once, as aborted.
  std::stop_token cancel = {};
  entry way_in = entry::founding;
  /// Of ranks that meet again. The lowest of those that are there listens, at the address of its
  /// place too if that is one of its own, and so a rank that comes in a lost one's place finds it.
  std::optional<reunion> again = {};
};

/// Told what happens on a session. Called on the session's own thread, one call at a time.
class SPARK_COMM_API session_listener {
 public:
  session_listener() = default;
  session_listener(const session_listener&) = delete;
  session_listener& operator=(const session_listener&) = delete;
  session_listener(session_listener&&) = delete;
  session_listener& operator=(session_listener&&) = delete;
  virtual ~session_listener() = default;

  virtual void on_message(int peer, std::span<const std::byte> message) noexcept = 0;

  /// The connection is gone: the peer closed it, died, or broke the protocol. Called once a peer.
  virtual void on_closed(int peer, const std::string& reason) noexcept = 0;
};

/// A met world: one framed connection between this rank and every other.
class SPARK_COMM_API session {
 public:
  /// Meets the others. Every rank calls it with the same address and world size. Rank and world
  /// size of the session are those of `place`, unless the survivors meet alone.
  ///
  /// The head accepts strangers' connections without harm and waits on until every rank has proved
  /// itself; a hello that does not fit is refused with the reason, and the right rank is waited
  /// for. One of another protocol version, or with another value of an `equal` fact, shows that
  /// the ranks are built differently: the meeting ends on both sides, which learn both values.
  ///
  /// With a key, only its holders get as far as a hello. Without one every process of this machine
  /// does: it could take a rank's place, or end the meeting with a version of its own. On a machine
  /// shared with people you do not trust, use a key on loopback too.
  ///
  /// Throws: invalid_argument before a socket is opened (rank, world, address); mismatch on a rank
  /// that was refused, and on all that were there if the ranks are built differently; timed_out
  /// naming the missing ranks and what was refused; peer_lost; aborted when it was cancelled;
  /// system_failed (address in use).
  [[nodiscard]] static std::unique_ptr<session> meet(const world& place,
                                                     const hello& mine,
                                                     const deadline& until,
                                                     const meeting_options& options = {});

  session() = default;
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  session(session&&) = delete;
  session& operator=(session&&) = delete;
  virtual ~session() = default;

  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int world_size() const noexcept = 0;

  /// This rank's place in the next meeting: of the address, port 0 has become the real port.
  [[nodiscard]] virtual world place() const = 0;

  /// Which meeting of these ranks it comes from; the same on all of them, and higher than that of
  /// any session before.
  [[nodiscard]] virtual std::uint64_t generation() const noexcept = 0;

  /// Where each rank is found for a reunion, in rank order: at a port of its own, which it holds
  /// until nobody has it any more. Empty where there are no sockets.
  [[nodiscard]] virtual std::vector<std::string> listener_addresses() const { return {}; }

  /// The port of this rank. Until it is taken, a started session answers there: whoever calls is
  /// told that nobody is meeting. Nothing where there are no sockets, or the second time.
  [[nodiscard]] virtual std::shared_ptr<const held_port> take_port() noexcept { return nullptr; }

  /// Every rank's bytes, in rank order. Who: every rank, the same number of times, before `start`.
  /// Throws: timed_out naming the ranks that did not send; peer_lost.
  [[nodiscard]] virtual std::vector<bytes> all_gather(std::span<const std::byte> mine,
                                                      const deadline& until) = 0;

  /// The head's bytes, on every rank; the others' argument is ignored. The head returns when every
  /// rank has acknowledged. Who and throws: as `all_gather`.
  [[nodiscard]] virtual bytes broadcast(std::span<const std::byte> from_head,
                                        const deadline& until) = 0;

  /// From now on messages and closures go to `listener`, which must outlive the session or its
  /// `stop`. Who: once.
  virtual void start(session_listener& listener) = 0;

  /// Queues a message for `peer` and returns; a peer that is gone is ignored (it was reported).
  /// Threads: any, after `start`.
  virtual void send(int peer, std::span<const std::byte> message) noexcept = 0;

  /// Closes all connections and ends the thread; no call to the listener afterwards. Idempotent.
  virtual void stop() noexcept = 0;
};

}  // namespace spark_comm::rendezvous
