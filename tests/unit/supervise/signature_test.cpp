// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/supervise/signature.hpp>
#include <spark_comm/supervise/signature_lane.hpp>
#include <spark_comm/supervise/signature_log.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <thread>

namespace spark_comm {
namespace {

operation_record reduction(std::uint64_t count = 4096) {
  return {.sequence = 1, .count_elements = count, .dtype = data_type::float32};
}

operation_record changed(operation_record record, void (*change)(operation_record&)) {
  change(record);
  return record;
}

TEST(signature, all_mismatch_kinds_have_names) {
  std::set<std::string> names;
  for (const mismatch_kind kind : all_mismatch_kinds) {
    EXPECT_NE(name_of(kind), "unknown");
    names.emplace(name_of(kind));
  }
  EXPECT_EQ(names.size(), 13U);
  EXPECT_EQ(name_of(static_cast<mismatch_kind>(99)), "unknown");
}

TEST(signature, what_must_agree_is_found_and_named) {
  struct row {
    const char* what;
    void (*change)(operation_record&);
    std::optional<mismatch_kind> kind;
  };

  using record = operation_record;
  const row rows[] = {
      {"kind", [](record& r) { r.kind = operation_kind::all_gather; }, mismatch_kind::operation},
      {"dtype", [](record& r) { r.dtype = data_type::bfloat16; }, mismatch_kind::dtype},
      {"count", [](record& r) { r.count_elements = 4095; }, mismatch_kind::count},
      {"zero", [](record& r) { r.count_elements = 0; }, mismatch_kind::count},
      {"op", [](record& r) { r.op = reduce_op::max; }, mismatch_kind::reduction},
      {"path", [](record& r) { r.path = path_kind::exchange; }, mismatch_kind::path},
      {"group", [](record& r) { r.set(operation_flag::in_group); }, mismatch_kind::grouping},
      {"capture", [](record& r) { r.set(operation_flag::captured); }, mismatch_kind::capture},
      {"uneven", [](record& r) { r.set(operation_flag::uneven); }, mismatch_kind::unevenness},
      {"stream", [](record& r) { r.stream = 9; }, std::nullopt},
      {"sequence", [](record& r) { r.sequence = 9; }, std::nullopt},
      {"communicator", [](record& r) { r.communicator = 9; }, std::nullopt},
      {"root without meaning", [](record& r) { r.root_or_peer = 3; }, std::nullopt},
  };
  for (const row& each : rows) {
    SCOPED_TRACE(each.what);
    const record other = changed(reduction(), each.change);
    EXPECT_EQ(difference(reduction(), other), each.kind);
    EXPECT_EQ(difference(other, reduction()), each.kind);
    EXPECT_EQ(fold(7, reduction()) == fold(7, other), !each.kind.has_value());
  }
}

TEST(signature, roots_are_compared_where_there_are_roots) {
  operation_record mine = reduction();
  mine.kind = operation_kind::broadcast;
  mine.root_or_peer = 0;
  operation_record theirs = mine;
  theirs.root_or_peer = 1;
  EXPECT_EQ(difference(mine, theirs), mismatch_kind::root);
  EXPECT_NE(fold(0, mine), fold(0, theirs));
  theirs.root_or_peer = 0;
  theirs.op = reduce_op::min;
  EXPECT_EQ(difference(mine, theirs), std::nullopt);
}

TEST(signature, a_send_fits_the_receive_of_the_same) {
  operation_record send{.sequence = 4, .count_elements = 10, .root_or_peer = 1};
  send.kind = operation_kind::send;
  send.dtype = data_type::bytes;
  send.set(operation_flag::in_group);
  operation_record recv{.sequence = 9, .count_elements = 10, .root_or_peer = 0};
  recv.kind = operation_kind::recv;
  recv.dtype = data_type::uint8;
  EXPECT_EQ(difference(send, recv), std::nullopt);
  EXPECT_EQ(fold(1, send), fold(1, recv));
  recv.count_elements = 11;
  EXPECT_EQ(difference(send, recv), mismatch_kind::count);
  EXPECT_NE(fold(1, send), fold(1, recv));
}

TEST(signature, order_matters) {
  const operation_record first = reduction(1);
  const operation_record second = reduction(2);
  EXPECT_NE(fold(fold(0, first), second), fold(fold(0, second), first));
}

TEST(signature, divergences_are_told_in_words) {
  const operation_record mine = reduction(409600);
  const operation_record theirs = reduction(409598);

  struct row {
    mismatch_kind kind;
    const char* text;
  };

  const row rows[] = {
      {mismatch_kind::count,
       "count differs: all_reduce #1 (409600 x fp32, sum, nccl) here, "
       "all_reduce #1 (409598 x fp32, sum, nccl) on rank 1"},
      {mismatch_kind::order,
       "order differs: all_reduce #1 (409600 x fp32, sum, nccl) comes first here, "
       "all_reduce #1 (409598 x fp32, sum, nccl) on rank 1"},
      {mismatch_kind::skipped_by_peer,
       "rank 1 skipped all_reduce #1 (409600 x fp32, sum, nccl) and went on with "
       "all_reduce #1 (409598 x fp32, sum, nccl)"},
      {mismatch_kind::skipped_here,
       "all_reduce #1 (409598 x fp32, sum, nccl) of rank 1 was skipped here, "
       "all_reduce #1 (409600 x fp32, sum, nccl) was issued in its place"},
      {mismatch_kind::unlocated,
       "operations differ from rank 1's somewhere after the first 7 that both issued"},
  };
  for (const row& each : rows) {
    EXPECT_EQ(describe({.kind = each.kind, .ordinal = 7, .mine = mine, .theirs = theirs}, 1),
              each.text);
  }
}

TEST(signature_lane, remembers_the_last_and_no_more) {
  signature_lane lane{4};
  EXPECT_EQ(lane.signature_after(0), empty_signature);
  EXPECT_FALSE(lane.find(0).has_value());
  std::uint64_t last = 0;
  for (std::uint64_t sequence = 1; sequence <= 6; ++sequence) {
    operation_record record = reduction(sequence * 10);
    record.sequence = sequence + 100;
    record.root_or_peer = -1;
    record.set(operation_flag::captured);
    last = lane.append(record);
    EXPECT_EQ(record.ordinal, sequence);
  }
  EXPECT_EQ(lane.submitted(), 6U);
  EXPECT_FALSE(lane.find(2).has_value());
  EXPECT_FALSE(lane.find(7).has_value());
  ASSERT_TRUE(lane.find(3).has_value());
  EXPECT_EQ(lane.find(3)->count_elements, 30U);
  EXPECT_EQ(lane.find(3)->sequence, 103U);
  EXPECT_EQ(lane.find(3)->root_or_peer, -1);
  EXPECT_TRUE(lane.find(3)->has(operation_flag::captured));
  EXPECT_EQ(lane.signature_after(6), last);
  EXPECT_FALSE(lane.signature_after(2).has_value());
}

TEST(signature_lane, completion_only_goes_forward) {
  signature_lane lane{4};
  lane.complete(3);
  lane.complete(2);
  EXPECT_EQ(lane.completed(), 3U);
}

TEST(signature_lane, can_be_read_while_it_is_written) {
  signature_lane lane{8};
  std::atomic<bool> is_over{false};
  std::thread reader{[&] {
    while (!is_over) {
      const std::uint64_t end = lane.submitted();
      if (const auto record = lane.find(end)) {
        EXPECT_EQ(record->count_elements, end * 3);
        EXPECT_EQ(record->sequence, end * 7);
      }
    }
  }};
  for (std::uint64_t each = 1; each <= 50000; ++each) {
    operation_record record = reduction(each * 3);
    record.sequence = each * 7;
    lane.append(record);
  }
  is_over = true;
  reader.join();
}

TEST(signature_log, files_each_kind_under_its_lane) {
  signature_log log{3};
  operation_record collective = reduction();
  operation_record send = reduction();
  send.kind = operation_kind::send;
  send.root_or_peer = 2;
  operation_record recv = send;
  recv.kind = operation_kind::recv;
  recv.sequence = 12;
  log.append(collective);
  log.append(collective);
  log.append(send);
  log.append(recv);
  EXPECT_EQ(collective.ordinal, 2U);
  EXPECT_EQ(send.ordinal, 1U);
  EXPECT_EQ(log.last_sequence(), 12U);
  EXPECT_EQ(log.lane(lane_kind::collectives, 0).submitted(), 2U);
  EXPECT_EQ(log.lane(lane_kind::outbound, 2).submitted(), 1U);
  EXPECT_EQ(log.lane(lane_kind::outbound, 1).submitted(), 0U);
  EXPECT_EQ(log.lane(lane_kind::inbound, 2).submitted(), 1U);
  log.complete(recv);
  log.complete(collective);
  EXPECT_EQ(log.lane(lane_kind::inbound, 2).completed(), 1U);
  EXPECT_EQ(log.lane(lane_kind::outbound, 2).completed(), 0U);
  EXPECT_EQ(log.lane(lane_kind::collectives, 0).completed(), 2U);
}

TEST(signature_log, the_end_of_a_group_counts_its_collectives_only) {
  signature_log log{2};
  operation_record member = reduction();
  member.set(operation_flag::in_group);
  operation_record send = member;
  send.kind = operation_kind::send;
  send.root_or_peer = 1;
  operation_record end = reduction(3);
  end.kind = operation_kind::group;
  log.append(member);
  log.append(send);
  log.append(member);
  log.append(end);
  EXPECT_EQ(end.ordinal, 3U);
  EXPECT_EQ(end.count_elements, 2U);
  EXPECT_EQ(log.lane(lane_kind::collectives, 0).find(3)->count_elements, 2U);
  log.append(send);
  log.append(end);
  EXPECT_EQ(end.ordinal, 0U);
  EXPECT_EQ(log.lane(lane_kind::collectives, 0).submitted(), 3U);
}

TEST(signature_log, lanes_have_counterparts) {
  EXPECT_EQ(lane_of(operation_kind::send), lane_kind::outbound);
  EXPECT_EQ(lane_of(operation_kind::recv), lane_kind::inbound);
  EXPECT_EQ(lane_of(operation_kind::group), lane_kind::collectives);
  for (const lane_kind kind : all_lane_kinds) {
    EXPECT_EQ(counterpart(counterpart(kind)), kind);
  }
  EXPECT_EQ(counterpart(lane_kind::outbound), lane_kind::inbound);
}

}  // namespace
}  // namespace spark_comm
