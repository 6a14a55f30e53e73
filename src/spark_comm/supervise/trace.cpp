// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/supervise/flight_entry.hpp>
#include <spark_comm/supervise/flight_reader.hpp>
#include <spark_comm/supervise/flight_record.hpp>
#include <spark_comm/supervise/lane_compare.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/signature.hpp>
#include <spark_comm/supervise/signature_log.hpp>
#include <spark_comm/supervise/trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace spark_comm {
namespace {

/// A lane as a record shows it.
using known_lane = std::map<std::uint64_t, operation_record>;

known_lane lane_of_log(const flight_log& log, lane_kind kind, int peer) {
  known_lane lane;
  for (const flight_entry& entry : log.entries) {
    const operation_record& record = entry.record;
    const bool is_on_it = lane_of(record.kind) == kind && record.ordinal > 0 &&
                          (kind == lane_kind::collectives || record.root_or_peer == peer);
    if (is_on_it) {
      lane.emplace(record.ordinal, record);
    }
  }
  return lane;
}

lane_lookup lookup_in(const known_lane& lane) {
  return [&lane](std::uint64_t ordinal) -> std::optional<operation_record> {
    const auto found = lane.find(ordinal);
    return found == lane.end() ? std::nullopt : std::optional{found->second};
  };
}

/// The first difference among what both show; damage leaves holes, and they are passed over.
std::optional<divergence> compare_lanes(const known_lane& mine, const known_lane& theirs) {
  if (mine.empty() || theirs.empty()) {
    return std::nullopt;
  }
  const lane_pair both{.mine = lookup_in(mine),
                       .theirs = lookup_in(theirs),
                       .is_peer_shorter = theirs.rbegin()->first < mine.rbegin()->first};
  for (const auto& [ordinal, record] : mine) {
    const auto other = theirs.find(ordinal);
    if (other != theirs.end() && difference(record, other->second)) {
      return locate(both, ordinal - 1, ordinal);
    }
  }
  return std::nullopt;
}

/// When the operation that differs was submitted, to tell which difference came first.
std::int64_t submitted_at(const flight_log& log, const operation_record& record) {
  for (const flight_entry& entry : log.entries) {
    if (entry.record.sequence == record.sequence) {
      return wall_ns(log, entry.submitted_ns);
    }
  }
  return wall_ns(log, 0);
}

std::optional<trace_divergence> find_first(const std::vector<flight_log>& logs) {
  std::optional<trace_divergence> first;
  std::int64_t first_ns = 0;
  for (std::size_t a = 0; a < logs.size(); ++a) {
    for (std::size_t b = a + 1; b < logs.size(); ++b) {
      for (const lane_kind kind : all_lane_kinds) {
        const auto mine = lane_of_log(logs[a], kind, logs[b].who.rank);
        const auto theirs = lane_of_log(logs[b], counterpart(kind), logs[a].who.rank);
        const auto found = compare_lanes(mine, theirs);
        if (!found) {
          continue;
        }
        const std::int64_t at = submitted_at(logs[a], found->mine);
        if (!first || at < first_ns) {
          first = {.rank = logs[a].who.rank, .peer = logs[b].who.rank, .found = *found};
          first_ns = at;
        }
      }
    }
  }
  return first;
}

rank_standing standing_of(const flight_log& log) {
  rank_standing standing{.rank = log.who.rank,
                         .collectives = 0,
                         .oldest = {},
                         .failed = {},
                         .last = {},
                         .end = log.end};
  for (const flight_entry& entry : log.entries) {
    const bool is_open =
        entry.stage == flight_stage::submitted || entry.stage == flight_stage::started;
    const bool is_run_here = !entry.record.has(operation_flag::captured);
    if (is_open && is_run_here && entry.record.kind != operation_kind::group && !standing.oldest) {
      standing.oldest = entry;
    }
    if (entry.stage == flight_stage::failed && !standing.failed) {
      standing.failed = entry;
    }
    if (lane_of(entry.record.kind) == lane_kind::collectives) {
      standing.collectives = std::max(standing.collectives, entry.record.ordinal);
    }
    standing.last = entry;
  }
  return standing;
}

std::string phrase(const trace_divergence& first) {
  const auto& [rank, peer, found] = first;
  std::string kind{name_of(found.kind)};
  if (found.kind == mismatch_kind::skipped_by_peer || found.kind == mismatch_kind::skipped_here) {
    const bool is_peer = found.kind == mismatch_kind::skipped_by_peer;
    kind = fmt::format("one skipped by rank {}", is_peer ? peer : rank);
  }
  return fmt::format("ranks {} and {} part ({}): {} on rank {}, {} on rank {}",
                     rank,
                     peer,
                     kind,
                     describe(found.mine),
                     rank,
                     describe(found.theirs),
                     peer);
}

/// Who has not issued what others wait for.
void add_behind(flight_trace& trace) {
  std::uint64_t furthest = 0;
  for (const rank_standing& rank : trace.ranks) {
    furthest = std::max(furthest, rank.collectives);
  }
  for (const rank_standing& rank : trace.ranks) {
    if (rank.collectives < furthest && rank.last) {
      trace.findings.push_back(
          fmt::format("rank {} is behind: it issued {} of {} collectives, its last operation is {}",
                      rank.rank,
                      rank.collectives,
                      furthest,
                      describe(rank.last->record)));
    }
  }
}

void add_stuck(flight_trace& trace) {
  for (const rank_standing& rank : trace.ranks) {
    if (rank.failed) {
      trace.findings.push_back(
          fmt::format("rank {}: {} failed ({}{})",
                      rank.rank,
                      describe(rank.failed->record),
                      name_of(rank.failed->code.value_or(errc::internal)),
                      rank.failed->native_number == 0
                          ? std::string{}
                          : fmt::format(", native {}", rank.failed->native_number)));
    }
    if (rank.oldest) {
      trace.findings.push_back(
          fmt::format("rank {}: {} was {} and never seen to end",
                      rank.rank,
                      describe(rank.oldest->record),
                      rank.oldest->stage == flight_stage::started ? "running" : "queued"));
    }
  }
}

void add_ends(flight_trace& trace) {
  for (std::size_t each = 0; each < trace.logs.size(); ++each) {
    if (!trace.logs[each].end) {
      trace.findings.push_back(fmt::format(
          "rank {}: process {} on {} has not said how it ended: killed, or still at work",
          trace.ranks[each].rank,
          trace.logs[each].process,
          trace.logs[each].host));
    }
  }
  if (!trace.missing.empty()) {
    trace.findings.push_back(fmt::format("no record of rank{} {}",
                                         trace.missing.size() == 1 ? "" : "s",
                                         fmt::join(trace.missing, ", ")));
  }
  for (const flight_log& log : trace.logs) {
    for (const std::string& problem : log.problems) {
      trace.findings.push_back(fmt::format("{}: {}", log.path, problem));
    }
  }
}

flight_trace analyse(std::vector<flight_log> logs) {
  flight_trace trace;
  trace.name = logs.front().who.name;
  trace.generation = logs.front().who.generation;
  trace.world_size = logs.front().who.world_size;
  std::ranges::stable_sort(logs, {}, [](const flight_log& log) { return log.who.rank; });
  std::vector<std::string> doubles;
  for (flight_log& log : logs) {
    if (!trace.logs.empty() && trace.logs.back().who.rank == log.who.rank) {
      doubles.push_back(fmt::format(
          "{}: rank {} has another record, this one is left out", log.path, log.who.rank));
    } else {
      trace.ranks.push_back(standing_of(log));
      trace.logs.push_back(std::move(log));
    }
  }
  std::size_t next = 0;
  for (int rank = 0; rank < trace.world_size && trace.missing.size() < 1024; ++rank) {
    if (next < trace.logs.size() && trace.logs[next].who.rank == rank) {
      ++next;
    } else {
      trace.missing.push_back(rank);
    }
  }
  trace.first = find_first(trace.logs);
  if (trace.first) {
    trace.findings.push_back(phrase(*trace.first));
  }
  add_behind(trace);
  add_stuck(trace);
  add_ends(trace);
  trace.findings.insert(trace.findings.end(), doubles.begin(), doubles.end());
  return trace;
}

}  // namespace

std::int64_t wall_ns(const flight_log& log, std::int64_t steady_ns) noexcept {
  // Unsigned, because a damaged header may hold anything.
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(log.wall_base_ns) +
                                   static_cast<std::uint64_t>(steady_ns) -
                                   static_cast<std::uint64_t>(log.steady_base_ns));
}

std::vector<flight_trace> merge_flight_records(std::vector<flight_log> logs) {
  std::map<std::tuple<std::string, std::uint32_t, int>, std::vector<flight_log>> groups;
  std::vector<std::string> unusable;
  for (flight_log& log : logs) {
    if (log.is_identified) {
      auto key = std::tuple{log.who.name, log.who.generation, log.who.world_size};
      groups[std::move(key)].push_back(std::move(log));
    } else {
      unusable.push_back(fmt::format("{}: {}", log.path, fmt::join(log.problems, "; ")));
    }
  }
  std::vector<flight_trace> traces;
  traces.reserve(groups.size() + 1);
  for (auto& [key, members] : groups) {
    traces.push_back(analyse(std::move(members)));
  }
  if (!unusable.empty()) {
    if (traces.empty()) {
      traces.emplace_back();
    }
    auto& findings = traces.back().findings;
    findings.insert(findings.end(), unusable.begin(), unusable.end());
  }
  return traces;
}

}  // namespace spark_comm
