// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/supervise/lane_compare.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/signature.hpp>
#include <spark_comm/supervise/signature_lane.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spark_comm {
namespace {

/// From what a peer reported.
std::optional<operation_record> find(const lane_report& theirs, std::uint64_t ordinal) {
  const std::uint64_t base = theirs.base_ordinal();
  if (ordinal <= base || ordinal > theirs.submitted) {
    return std::nullopt;
  }
  return theirs.tail[ordinal - base - 1];
}

/// The peer's, after `ordinal`; none outside of what it shows.
std::optional<std::uint64_t> signature_after(const lane_report& theirs, std::uint64_t ordinal) {
  const std::uint64_t base = theirs.base_ordinal();
  if (ordinal < base || ordinal > theirs.submitted) {
    return std::nullopt;
  }
  std::uint64_t signature = theirs.base_signature;
  for (std::size_t each = 0; each < ordinal - base; ++each) {
    signature = fold(signature, theirs.tail[each]);
  }
  return signature;
}

/// Does `skipping` from `at` on do what `other` does one further? At least one comparison must be
/// possible and none may fail.
bool is_one_behind(const lane_lookup& skipping, const lane_lookup& other, std::uint64_t at) {
  constexpr std::uint64_t window = 4;
  std::uint64_t compared = 0;
  for (std::uint64_t each = at; each < at + window; ++each) {
    const auto here = skipping(each);
    const auto there = other(each + 1);
    if (!here || !there) {
      break;
    }
    if (difference(*here, *there)) {
      return false;
    }
    ++compared;
  }
  return compared > 0;
}

bool agree(const std::optional<operation_record>& mine,
           const std::optional<operation_record>& theirs) {
  return mine && theirs && !difference(*mine, *theirs);
}

/// The kind of a difference at `at`, seen with what comes next: a lane that is shifted, or two
/// neighbours changed over, explain more than a single changed operation does.
mismatch_kind explain(const lane_pair& both, std::uint64_t at, mismatch_kind plain) {
  const auto& [mine, theirs, is_peer_shorter] = both;
  const bool peer_did_mine_next = agree(mine(at), theirs(at + 1));
  const bool i_did_theirs_next = agree(mine(at + 1), theirs(at));
  const bool goes_on_equal =
      !mine(at + 2) || !theirs(at + 2) || agree(mine(at + 2), theirs(at + 2));
  if (peer_did_mine_next && i_did_theirs_next && goes_on_equal) {
    return mismatch_kind::order;
  }
  const bool peer_may_have_skipped = i_did_theirs_next && is_one_behind(theirs, mine, at);
  const bool i_may_have_skipped = peer_did_mine_next && is_one_behind(mine, theirs, at);
  if (peer_may_have_skipped && i_may_have_skipped) {
    // Two operations in turn look the same shifted either way; the shorter lane is the one that
    // lacks.
    return is_peer_shorter ? mismatch_kind::skipped_by_peer : mismatch_kind::skipped_here;
  }
  if (peer_may_have_skipped) {
    return mismatch_kind::skipped_by_peer;
  }
  if (i_may_have_skipped) {
    return mismatch_kind::skipped_here;
  }
  return plain;
}

lane_relation relation_of(std::uint64_t mine, std::uint64_t theirs) noexcept {
  if (mine == theirs) {
    return lane_relation::level;
  }
  return theirs < mine ? lane_relation::peer_behind : lane_relation::peer_ahead;
}

}  // namespace

std::optional<divergence> locate(const lane_pair& both, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t ordinal = from + 1; ordinal <= to; ++ordinal) {
    const auto mine = both.mine(ordinal);
    const auto theirs = both.theirs(ordinal);
    if (!mine || !theirs) {
      return std::nullopt;
    }
    if (const auto plain = difference(*mine, *theirs)) {
      return divergence{.kind = explain(both, ordinal, *plain),
                        .ordinal = ordinal,
                        .mine = *mine,
                        .theirs = *theirs};
    }
  }
  return std::nullopt;
}

std::string_view name_of(lane_relation relation) noexcept {
  switch (relation) {
    case lane_relation::level:            return "level";
    case lane_relation::peer_behind:      return "peer behind";
    case lane_relation::peer_ahead:       return "peer ahead";
    case lane_relation::unknown:          return "unknown";
    case lane_relation::parted:           return "parted";
    case lane_relation::parted_somewhere: return "parted somewhere";
  }
  return "unknown";
}

lane_report history_of(const signature_lane& lane, std::uint64_t first, std::size_t length) {
  lane_report report;
  const std::uint64_t submitted = lane.submitted();
  first = std::max<std::uint64_t>(first, 1);
  const std::uint64_t end = first > submitted ? submitted : std::min(submitted, first + length - 1);
  // From the end: what the ring may lose meanwhile is the oldest.
  report.submitted = end;
  std::uint64_t ordinal = end;
  for (; ordinal >= first; --ordinal) {
    auto record = lane.find(ordinal);
    if (!record) {
      break;
    }
    report.tail.push_back(*record);
  }
  while (true) {
    if (const auto base = lane.signature_after(ordinal)) {
      report.base_signature = *base;
      break;
    }
    if (report.tail.empty()) {
      return {};  // overtaken entirely; says nothing rather than something wrong
    }
    report.tail.pop_back();
    ++ordinal;
  }
  std::ranges::reverse(report.tail);
  return report;
}

lane_report report_of(const signature_lane& lane, std::size_t tail_length) {
  const std::uint64_t end = lane.submitted();
  const std::uint64_t first = end > tail_length ? end - tail_length + 1 : 1;
  lane_report report = history_of(lane, first, tail_length);
  report.completed = lane.completed();
  return report;
}

lane_verdict compare(const signature_lane& mine, const lane_report& theirs, std::uint64_t matched) {
  const std::uint64_t my_end = mine.submitted();
  const std::uint64_t common = std::min(my_end, theirs.submitted);
  const auto my_signature = mine.signature_after(common);
  const auto their_signature = signature_after(theirs, common);
  if (!my_signature || !their_signature) {
    return {.relation = lane_relation::unknown, .matched = matched, .found = std::nullopt};
  }
  if (*my_signature == *their_signature) {
    return {.relation = relation_of(my_end, theirs.submitted),
            .matched = std::max(common, matched),
            .found = std::nullopt};
  }
  const std::uint64_t base = theirs.base_ordinal();
  const auto my_base = mine.signature_after(base);
  const bool base_agrees = base <= matched || (my_base && *my_base == theirs.base_signature);
  if (base_agrees) {
    const lane_pair both{.mine = [&](std::uint64_t ordinal) { return mine.find(ordinal); },
                         .theirs = [&](std::uint64_t ordinal) { return find(theirs, ordinal); },
                         .is_peer_shorter = theirs.submitted < my_end};
    if (auto found = locate(both, std::max(base, std::min(matched, common)), common)) {
      return {.relation = lane_relation::parted, .matched = found->ordinal - 1, .found = found};
    }
  }
  return {.relation = lane_relation::parted_somewhere, .matched = matched, .found = std::nullopt};
}

}  // namespace spark_comm
