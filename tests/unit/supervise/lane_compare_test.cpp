// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/supervise/lane_compare.hpp>
#include <spark_comm/supervise/signature_log.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm {
namespace {

/// Collectives written as numbers: the count of an fp32 all-reduce.
void issue(signature_lane& lane, std::initializer_list<std::uint64_t> counts) {
  for (const std::uint64_t count : counts) {
    operation_record record{.sequence = lane.submitted() + 1, .count_elements = count};
    record.dtype = data_type::float32;
    lane.append(record);
  }
}

void issue_many(signature_lane& lane, std::uint64_t how_many) {
  for (std::uint64_t each = 0; each < how_many; ++each) {
    issue(lane, {100});
  }
}

TEST(lane_compare, all_relations_have_names) {
  std::set<std::string> names;
  for (const lane_relation relation : all_lane_relations) {
    names.emplace(name_of(relation));
  }
  EXPECT_EQ(names.size(), 6U);
  EXPECT_EQ(name_of(static_cast<lane_relation>(99)), "unknown");
}

TEST(lane_compare, equal_lanes_are_level_or_ahead_or_behind) {
  struct row {
    std::uint64_t mine, theirs;
    lane_relation relation;
  };

  const row rows[] = {
      {0, 0, lane_relation::level},
      {5, 5, lane_relation::level},
      {100, 100, lane_relation::level},
      {0, 3, lane_relation::peer_ahead},
      {3, 0, lane_relation::peer_behind},
      {4, 9, lane_relation::peer_ahead},
      {90, 5, lane_relation::peer_behind},
      {5, 90, lane_relation::unknown},
  };
  for (const row& each : rows) {
    signature_lane mine{128};
    signature_lane theirs{128};
    issue_many(mine, each.mine);
    issue_many(theirs, each.theirs);
    const lane_verdict verdict = compare(mine, report_of(theirs, 16), 0);
    EXPECT_EQ(verdict.relation, each.relation) << each.mine << " against " << each.theirs;
    const bool is_known = each.relation != lane_relation::unknown;
    EXPECT_EQ(verdict.matched, is_known ? std::min(each.mine, each.theirs) : 0);
  }
}

TEST(lane_compare, a_peer_further_behind_than_the_ring_is_unknown) {
  signature_lane mine{16};
  signature_lane theirs{16};
  issue_many(mine, 40);
  issue_many(theirs, 5);
  EXPECT_EQ(compare(mine, report_of(theirs, 16), 0).relation, lane_relation::unknown);
}

TEST(lane_compare, says_what_differs_and_where) {
  struct row {
    std::initializer_list<std::uint64_t> mine, theirs;
    mismatch_kind kind;
    std::uint64_t ordinal;
  };

  const row rows[] = {
      {{409600}, {409598}, mismatch_kind::count, 1},
      {{1, 2, 0}, {1, 2, 8}, mismatch_kind::count, 3},
      {{1, 2, 3, 4}, {1, 3, 2, 4}, mismatch_kind::order, 2},
      {{1, 2, 3}, {1, 3, 2}, mismatch_kind::order, 2},
      {{1, 2, 3, 4}, {1, 3, 4}, mismatch_kind::skipped_by_peer, 2},
      {{1, 3, 4}, {1, 2, 3, 4}, mismatch_kind::skipped_here, 2},
      {{5, 6, 5, 6, 5}, {6, 5, 6, 5}, mismatch_kind::skipped_by_peer, 1},
      {{6, 5, 6, 5}, {5, 6, 5, 6, 5}, mismatch_kind::skipped_here, 1},
      {{1, 2, 3, 4}, {1, 9, 3, 4}, mismatch_kind::count, 2},
      {{1, 2, 3}, {1, 9}, mismatch_kind::count, 2},
  };
  for (const row& each : rows) {
    signature_lane mine{64};
    signature_lane theirs{64};
    issue(mine, each.mine);
    issue(theirs, each.theirs);
    const lane_verdict verdict = compare(mine, report_of(theirs, 16), 0);
    ASSERT_EQ(verdict.relation, lane_relation::parted);
    EXPECT_EQ(verdict.found->kind, each.kind) << name_of(verdict.found->kind);
    EXPECT_EQ(verdict.found->ordinal, each.ordinal);
    EXPECT_EQ(verdict.matched, each.ordinal - 1);
  }
}

TEST(lane_compare, locate_stops_where_a_side_knows_no_more) {
  const auto counts = [](std::vector<std::uint64_t> known) {
    return [known = std::move(known)](std::uint64_t ordinal) -> std::optional<operation_record> {
      if (ordinal == 0 || ordinal > known.size()) {
        return std::nullopt;
      }
      return operation_record{.count_elements = known[ordinal - 1]};
    };
  };
  EXPECT_EQ(locate({.mine = counts({1, 2, 3}), .theirs = counts({1, 2, 9})}, 0, 3)->ordinal, 3U);
  EXPECT_FALSE(locate({.mine = counts({1, 2, 3}), .theirs = counts({1, 2, 9})}, 0, 2).has_value());
  EXPECT_FALSE(locate({.mine = counts({1}), .theirs = counts({1, 2})}, 0, 2).has_value());
}

TEST(lane_compare, both_sides_see_the_same_place) {
  signature_lane mine{64};
  signature_lane theirs{64};
  issue(mine, {1, 2, 3, 4, 5});
  issue(theirs, {1, 2, 7, 4});
  const auto here = compare(mine, report_of(theirs, 16), 0);
  const auto there = compare(theirs, report_of(mine, 16), 0);
  EXPECT_EQ(here.found->ordinal, there.found->ordinal);
  EXPECT_EQ(here.found->mine.count_elements, there.found->theirs.count_elements);
}

TEST(lane_compare, an_old_difference_is_found_by_history) {
  signature_lane mine{1024};
  signature_lane theirs{1024};
  issue_many(mine, 200);
  issue_many(theirs, 200);
  issue(mine, {1});
  issue(theirs, {2});
  issue_many(mine, 300);
  issue_many(theirs, 250);
  const auto verdict = compare(mine, report_of(theirs, 16), 150);
  EXPECT_EQ(verdict.relation, lane_relation::parted_somewhere);
  EXPECT_EQ(verdict.matched, 150U);
  const auto located = compare(mine, history_of(theirs, 151, 512), 150);
  ASSERT_EQ(located.relation, lane_relation::parted);
  EXPECT_EQ(located.found->ordinal, 201U);
  EXPECT_EQ(located.found->theirs.count_elements, 2U);
}

TEST(lane_compare, history_gives_what_there_is) {
  signature_lane lane{16};
  EXPECT_EQ(history_of(lane, 1, 10).submitted, 0U);
  issue_many(lane, 40);
  EXPECT_EQ(history_of(lane, 1, 10).tail.size(), 0U);
  EXPECT_EQ(history_of(lane, 1, 100).tail.size(), 15U);  // the sixteenth's base is lost
  EXPECT_EQ(history_of(lane, 39, 100).tail.size(), 2U);
  EXPECT_EQ(history_of(lane, 39, 100).base_ordinal(), 38U);
  EXPECT_EQ(history_of(lane, ~0ULL, 100).tail.size(), 0U);
  EXPECT_EQ(history_of(lane, 0, 0).tail.size(), 0U);
}

/// A rank of a program in which every two ranks issue matching operations, interleaved differently.
struct simulated_rank {
  explicit simulated_rank(int world_size)
      : log(world_size), matched(static_cast<std::size_t>(world_size) * 3) {}

  std::deque<operation_record> pending;
  signature_log log;
  std::vector<std::uint64_t> matched;  // by peer and lane
};

class matched_program {
 public:
  explicit matched_program(int world_size) : random_(7), world_size_(world_size) {
    for (int rank = 0; rank < world_size; ++rank) {
      ranks_.emplace_back(world_size);
    }
  }

  void plan() {
    if (random_() % 4 != 0) {
      plan_collective();
    } else {
      plan_pair();
    }
  }

  /// A rank issues up to `most` of what it has to do.
  void advance(std::size_t most) {
    simulated_rank& rank = ranks_[random_() % ranks_.size()];
    for (std::size_t each = 0; each < most && !rank.pending.empty(); ++each) {
      rank.log.append(rank.pending.front());
      rank.pending.pop_front();
    }
  }

  /// A heartbeat between two random ranks, all three lanes.
  lane_relation beat() {
    const auto from = static_cast<int>(random_() % ranks_.size());
    const auto to = static_cast<int>(random_() % ranks_.size());
    lane_relation worst = lane_relation::level;
    for (const lane_kind kind : all_lane_kinds) {
      auto& receiver = ranks_[static_cast<std::size_t>(to)];
      const auto report =
          report_of(ranks_[static_cast<std::size_t>(from)].log.lane(counterpart(kind), to), 16);
      auto& matched =
          receiver.matched[static_cast<std::size_t>(from * 3) + static_cast<std::size_t>(kind)];
      const auto verdict = compare(receiver.log.lane(kind, from), report, matched);
      matched = verdict.matched;
      worst = std::max(worst, verdict.relation);
    }
    return worst;
  }

  [[nodiscard]] std::size_t backlog() const { return ranks_[0].pending.size(); }

 private:
  operation_record random_record() {
    operation_record record{.sequence = ++sequence_, .count_elements = random_() % 1000};
    record.dtype = all_data_types[random_() % std::size(all_data_types)];
    record.op = all_reduce_ops[random_() % std::size(all_reduce_ops)];
    record.stream = random_();
    return record;
  }

  void plan_collective() {
    operation_record record = random_record();
    constexpr operation_kind kinds[] = {operation_kind::all_reduce,
                                        operation_kind::broadcast,
                                        operation_kind::all_gather,
                                        operation_kind::barrier,
                                        operation_kind::all_to_all};
    record.kind = kinds[random_() % std::size(kinds)];
    record.root_or_peer = is_rooted(record.kind) ? static_cast<int>(random_()) % world_size_ : -1;
    const bool is_uneven = record.kind == operation_kind::all_to_all;
    for (simulated_rank& rank : ranks_) {
      operation_record own = record;
      own.stream = random_();
      if (is_uneven) {
        own.set(operation_flag::uneven);
        own.count_elements = random_() % 1000;
      }
      rank.pending.push_back(own);
    }
  }

  void plan_pair() {
    operation_record record = random_record();
    const auto from = random_() % ranks_.size();
    const auto to = random_() % ranks_.size();
    record.kind = operation_kind::send;
    record.root_or_peer = static_cast<int>(to);
    if (random_() % 2 == 0) {
      record.set(operation_flag::in_group);
    }
    // The sender may be early: it puts the send before what it had planned last.
    auto& sender = ranks_[from].pending;
    const bool is_early = !sender.empty() && !is_point_to_point(sender.back().kind);
    sender.insert(is_early ? sender.end() - 1 : sender.end(), record);
    record.kind = operation_kind::recv;
    record.root_or_peer = static_cast<int>(from);
    record.flags = 0;
    ranks_[to].pending.push_back(record);
  }

  std::mt19937 random_;
  int world_size_;
  std::deque<simulated_rank> ranks_;
  std::uint64_t sequence_ = 0;
};

TEST(lane_compare, a_million_matched_operations_raise_no_alarm) {
  matched_program program{4};
  std::size_t heard = 0;
  std::size_t compared = 0;
  for (int each = 0; each < 1'000'000; ++each) {
    program.plan();
    while (program.backlog() > 1000) {
      program.advance(700);
    }
    program.advance(static_cast<std::size_t>(each) % 7);
    if (each % 8 == 0) {
      const lane_relation relation = program.beat();
      ++heard;
      compared += relation != lane_relation::unknown ? 1 : 0;
      ASSERT_LT(relation, lane_relation::parted) << each;
    }
  }
  EXPECT_EQ(heard, 125'000U);
  EXPECT_GT(compared, heard / 20);  // the alarm was armed
}

TEST(lane_compare, one_changed_operation_among_many_always_raises_one) {
  std::mt19937 random{11};
  for (int round = 0; round < 500; ++round) {
    signature_lane mine{1024};
    signature_lane theirs{1024};
    const std::uint64_t changed = 1 + random() % 300;
    for (std::uint64_t ordinal = 1; ordinal <= 300; ++ordinal) {
      const std::uint64_t count = random() % 3;
      issue(mine, {count});
      issue(theirs, {ordinal == changed ? count + 1 : count});
    }
    const auto verdict = compare(mine, history_of(theirs, 1, 512), 0);
    ASSERT_EQ(verdict.relation, lane_relation::parted);
    EXPECT_LE(verdict.found->ordinal, changed);
    EXPECT_GE(compare(mine, report_of(theirs, 16), 0).relation, lane_relation::parted);
  }
}

}  // namespace
}  // namespace spark_comm
