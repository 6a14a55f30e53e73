// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/heartbeat.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/signature.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm {
namespace {

std::string in_seconds(duration span) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(span).count());
}

duration since(time_point then, time_point now) noexcept {
  return std::max(duration::zero(), std::chrono::duration_cast<duration>(now - then));
}

/// Does the operation need `peer`?
bool concerns(const operation_record& record, const peer_observation& peer) noexcept {
  return !is_point_to_point(record.kind) || record.root_or_peer == peer.rank;
}

/// Has `peer` issued its part? True also where nothing can be said.
bool has_submitted(const peer_observation& peer, const operation_record& record) noexcept {
  switch (record.kind) {
    case operation_kind::send:                return peer.receives_submitted >= record.ordinal;
    case operation_kind::recv:                return peer.sends_submitted >= record.ordinal;
    case operation_kind::all_reduce:
    case operation_kind::reduce:
    case operation_kind::broadcast:
    case operation_kind::all_gather:
    case operation_kind::reduce_scatter:
    case operation_kind::all_to_all:
    case operation_kind::barrier:
    case operation_kind::group:
    case operation_kind::all_reduce_rms_norm: break;
  }
  return peer.collectives_submitted >= record.ordinal;
}

watch_verdict verdict_of(errc code) {
  watch_verdict verdict;
  verdict.code = code;
  return verdict;
}

std::optional<operation_record> oldest(const watch_observation& seen) {
  return seen.pending.empty() ? std::nullopt : std::optional{seen.pending.front().record};
}

std::optional<watch_verdict> judge_native(const watch_observation& seen) {
  if (!seen.native) {
    return std::nullopt;
  }
  watch_verdict verdict = verdict_of(seen.native->code);
  verdict.native = seen.native->native;
  verdict.operation = seen.native->operation;
  verdict.text = verdict.operation ? "the operation failed on the device"
                                   : "the communication library reported an error";
  if (!seen.native->text.empty()) {
    verdict.text = seen.native->text;
  }
  verdict.peers = seen.native->peers;
  if (!verdict.peers.empty()) {
    return verdict;
  }
  for (const peer_observation& peer : seen.peers) {
    if (peer.connection != peer_connection::open || peer.failure) {
      verdict.peers.push_back(peer.rank);
    }
  }
  if (!verdict.operation) {
    verdict.operation = oldest(seen);
  }
  return verdict;
}

std::optional<watch_verdict> judge_mismatch(const watch_observation& seen) {
  for (const peer_observation& peer : seen.peers) {
    if (peer.parted) {
      watch_verdict verdict = verdict_of(errc::mismatch);
      verdict.text = describe(*peer.parted, peer.rank);
      verdict.peers = {peer.rank};
      if (peer.parted->kind != mismatch_kind::unlocated) {
        verdict.operation = peer.parted->mine;
      }
      return verdict;
    }
  }
  return std::nullopt;
}

/// Whom a failed rank blames, unless that is us alone: then it is the one we have lost.
std::vector<int> blamed_by(const failure_notice& notice, std::span<const peer_observation> peers) {
  std::vector<int> blamed;
  for (const peer_observation& peer : peers) {
    if (std::ranges::find(notice.peers, peer.rank) != notice.peers.end()) {
      blamed.push_back(peer.rank);
    }
  }
  return blamed.empty() ? std::vector<int>{notice.origin} : blamed;
}

/// A mismatch is everybody's; any other failure of a peer means that the peer is lost to us.
std::optional<watch_verdict> judge_notices(const watch_observation& seen) {
  for (const peer_observation& peer : seen.peers) {
    if (!peer.failure) {
      continue;
    }
    const failure_notice& notice = *peer.failure;
    watch_verdict verdict =
        verdict_of(notice.code == errc::mismatch ? errc::mismatch : errc::peer_lost);
    verdict.text = fmt::format(
        "rank {} failed first ({}): {}", notice.origin, name_of(notice.code), notice.text);
    verdict.peers = blamed_by(notice, seen.peers);
    verdict.was_announced = true;
    return verdict;
  }
  return std::nullopt;
}

std::optional<watch_verdict> judge_closed(const watch_observation& seen) {
  watch_verdict verdict = verdict_of(errc::peer_lost);
  for (const peer_observation& peer : seen.peers) {
    if (peer.connection == peer_connection::closed) {
      verdict.text += fmt::format(
          "{}rank {} is gone ({})", verdict.text.empty() ? "" : "; ", peer.rank, peer.close_reason);
      verdict.peers.push_back(peer.rank);
    }
  }
  if (verdict.peers.empty()) {
    return std::nullopt;
  }
  verdict.operation = oldest(seen);
  return verdict;
}

std::optional<watch_verdict> judge_left(const watch_observation& seen) {
  for (const watched_operation& operation : seen.pending) {
    for (const peer_observation& peer : seen.peers) {
      const bool is_awaited = peer.connection == peer_connection::left &&
                              concerns(operation.record, peer) &&
                              !has_submitted(peer, operation.record);
      if (is_awaited) {
        watch_verdict verdict = verdict_of(errc::peer_lost);
        verdict.text =
            fmt::format("rank {} closed its communicator and will not take part", peer.rank);
        verdict.peers = {peer.rank};
        verdict.operation = operation.record;
        return verdict;
      }
    }
  }
  return std::nullopt;
}

std::optional<watch_verdict> judge_silent(const watch_observation& seen) {
  watch_verdict verdict = verdict_of(errc::peer_lost);
  for (const peer_observation& peer : seen.peers) {
    const duration silence = since(peer.last_heard, seen.now);
    if (peer.connection == peer_connection::open && silence > seen.silence_limit) {
      verdict.text += fmt::format("{}rank {} has been silent for {}",
                                  verdict.text.empty() ? "" : "; ",
                                  peer.rank,
                                  in_seconds(silence));
      verdict.peers.push_back(peer.rank);
    }
  }
  if (verdict.peers.empty()) {
    return std::nullopt;
  }
  verdict.operation = oldest(seen);
  return verdict;
}

/// Who holds the operation up, as far as heartbeats tell.
void blame(watch_verdict& verdict, const operation_record& record, const watch_observation& seen) {
  std::vector<int> unfinished;
  for (const peer_observation& peer : seen.peers) {
    if (!concerns(record, peer)) {
      continue;
    }
    if (!has_submitted(peer, record)) {
      verdict.peers.push_back(peer.rank);
      verdict.text += fmt::format("; rank {} has not issued {} (its last is #{}, heard {} ago)",
                                  peer.rank,
                                  is_point_to_point(record.kind) ? "the other side" : "it",
                                  peer.last_sequence,
                                  in_seconds(since(peer.last_heard, seen.now)));
    } else if (!is_point_to_point(record.kind) && peer.collectives_completed < record.ordinal) {
      unfinished.push_back(peer.rank);
    }
  }
  if (!verdict.peers.empty() || seen.peers.empty()) {
    return;
  }
  verdict.text += "; every rank has issued it";
  if (!unfinished.empty()) {
    verdict.text += fmt::format(", unfinished on rank{} {} as well",
                                unfinished.size() == 1 ? "" : "s",
                                fmt::join(unfinished, ", "));
  }
}

/// The same for a run of a graph, which nobody counts: only silence tells, or that there is but one
/// peer.
void blame_for_run(watch_verdict& verdict, duration taken, const watch_observation& seen) {
  for (const peer_observation& peer : seen.peers) {
    const duration silence = since(peer.last_heard, seen.now);
    if (silence > taken / 2) {
      verdict.peers.push_back(peer.rank);
      verdict.text +=
          fmt::format("; rank {} has not been heard for {}", peer.rank, in_seconds(silence));
    }
  }
  if (!verdict.peers.empty() || seen.peers.empty()) {
    return;
  }
  if (seen.peers.size() == 1) {
    verdict.peers = {seen.peers.front().rank};
  }
  verdict.text +=
      fmt::format("; {} alive, and may not have launched the same graph",
                  seen.peers.size() == 1 ? fmt::format("rank {} is", seen.peers.front().rank)
                                         : std::string{"all ranks are"});
}

std::optional<watch_verdict> judge_time(const watch_observation& seen) {
  for (const watched_operation& operation : seen.pending) {
    const bool is_running = operation.started_at.has_value();
    const duration limit = is_running ? operation.limits.running : operation.limits.queued;
    const duration taken =
        since(is_running ? *operation.started_at : operation.submitted_at, seen.now);
    if (limit == operation_limits::none || taken < limit) {
      continue;
    }
    watch_verdict verdict = verdict_of(errc::timed_out);
    const bool is_captured = operation.record.has(operation_flag::captured);
    verdict.text = fmt::format("{} for {}",
                               is_captured  ? "has been running in a graph"
                               : is_running ? "has been running"
                                            : "has been queued behind others",
                               in_seconds(taken));
    verdict.operation = operation.record;
    verdict.limit = limit;
    if (is_captured) {
      blame_for_run(verdict, taken, seen);
    } else {
      blame(verdict, operation.record, seen);
    }
    return verdict;
  }
  return std::nullopt;
}

}  // namespace

std::optional<watch_verdict> judge(const watch_observation& seen) {
  for (const auto rule : {judge_native,
                          judge_mismatch,
                          judge_notices,
                          judge_closed,
                          judge_left,
                          judge_silent,
                          judge_time}) {
    if (auto verdict = rule(seen)) {
      return verdict;
    }
  }
  return std::nullopt;
}

error to_error(const watch_verdict& verdict, const error_context& context) {
  error_context full = context;
  full.peers = verdict.peers;
  full.deadline = verdict.limit;
  if (verdict.operation) {
    full.operation = name_of(verdict.operation->kind);
    full.sequence = verdict.operation->sequence;
    full.count_elements = verdict.operation->count_elements;
    full.dtype = verdict.operation->dtype;
  }
  return error{verdict.code, verdict.text, std::move(full), verdict.native};
}

failure_notice to_notice(const watch_verdict& verdict, int rank) {
  failure_notice notice{.code = verdict.code,
                        .origin = rank,
                        .sequence = {},
                        .text = verdict.text,
                        .peers = {verdict.peers.begin(), verdict.peers.end()}};
  if (verdict.operation) {
    notice.sequence = verdict.operation->sequence;
  }
  return notice;
}

time_point next_limit(std::span<const watched_operation> pending) noexcept {
  time_point next = time_point::max();
  for (const watched_operation& operation : pending) {
    const bool is_running = operation.started_at.has_value();
    const duration limit = is_running ? operation.limits.running : operation.limits.queued;
    const time_point from = is_running ? *operation.started_at : operation.submitted_at;
    if (limit < time_point::max() - from) {
      next = std::min(next, from + limit);
    }
  }
  return next;
}

time_point next_look(time_point now, time_point limit, duration interval) noexcept {
  constexpr duration finest = std::chrono::milliseconds{1};
  const duration left =
      limit > now ? std::chrono::duration_cast<duration>(limit - now) : duration::zero();
  // Half of what is left: a start that is seen late shortens the running clock by as much.
  return now + std::clamp(left / 2, std::min(finest, interval), interval);
}

}  // namespace spark_comm
