// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/supervise/detail/mixing.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/signature.hpp>

#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>

namespace spark_comm {
namespace {

/// An operation with everything made equal that need not agree.
struct essence {
  operation_kind kind;
  data_type dtype;
  reduce_op op;
  path_kind path;
  std::int32_t root;
  std::uint64_t count;
  bool is_grouped;
  bool is_captured;
  bool is_uneven;
};

essence essence_of(const operation_record& record) noexcept {
  const bool is_pairwise = is_point_to_point(record.kind);
  const bool has_elements =
      record.kind != operation_kind::group && record.kind != operation_kind::barrier;
  const bool is_uneven = record.has(operation_flag::uneven);
  const bool has_count = !is_uneven && record.kind != operation_kind::barrier;
  return {
      .kind = is_pairwise ? operation_kind::send : record.kind,
      .dtype = has_elements && record.dtype != data_type::bytes ? record.dtype : data_type::uint8,
      .op = is_reducing(record.kind) ? record.op : reduce_op::sum,
      .path = record.path,
      .root = is_rooted(record.kind) ? record.root_or_peer : -1,
      .count = has_count ? record.count_elements : 0,
      .is_grouped = !is_pairwise && record.has(operation_flag::in_group),
      .is_captured = record.has(operation_flag::captured),
      .is_uneven = is_uneven,
  };
}

}  // namespace

std::string_view name_of(mismatch_kind kind) noexcept {
  switch (kind) {
    case mismatch_kind::operation:       return "operation";
    case mismatch_kind::dtype:           return "dtype";
    case mismatch_kind::count:           return "count";
    case mismatch_kind::reduction:       return "reduce operation";
    case mismatch_kind::root:            return "root";
    case mismatch_kind::path:            return "path";
    case mismatch_kind::grouping:        return "grouping";
    case mismatch_kind::capture:         return "capture";
    case mismatch_kind::unevenness:      return "unevenness";
    case mismatch_kind::order:           return "order";
    case mismatch_kind::skipped_by_peer: return "skipped by peer";
    case mismatch_kind::skipped_here:    return "skipped here";
    case mismatch_kind::unlocated:       return "unlocated";
  }
  return "unknown";
}

std::optional<mismatch_kind> difference(const operation_record& mine,
                                        const operation_record& theirs) noexcept {
  const essence a = essence_of(mine);
  const essence b = essence_of(theirs);
  // From what says most to what says least: another kind of operation differs in all else as well.
  if (a.kind != b.kind) {
    return mismatch_kind::operation;
  }
  if (a.is_uneven != b.is_uneven) {
    return mismatch_kind::unevenness;
  }
  if (a.dtype != b.dtype) {
    return mismatch_kind::dtype;
  }
  if (a.count != b.count) {
    return mine.kind == operation_kind::group ? mismatch_kind::grouping : mismatch_kind::count;
  }
  if (a.op != b.op) {
    return mismatch_kind::reduction;
  }
  if (a.root != b.root) {
    return mismatch_kind::root;
  }
  if (a.is_grouped != b.is_grouped) {
    return mismatch_kind::grouping;
  }
  if (a.is_captured != b.is_captured) {
    return mismatch_kind::capture;
  }
  if (a.path != b.path) {
    return mismatch_kind::path;
  }
  return std::nullopt;
}

std::uint64_t fold(std::uint64_t signature, const operation_record& record) noexcept {
  const essence part = essence_of(record);
  const std::uint64_t kinds =
      static_cast<std::uint64_t>(part.kind) | static_cast<std::uint64_t>(part.dtype) << 8U |
      static_cast<std::uint64_t>(part.op) << 16U | static_cast<std::uint64_t>(part.path) << 24U |
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(part.root)) << 32U;
  const std::uint64_t marks =
      (part.is_grouped ? 1U : 0U) | (part.is_captured ? 2U : 0U) | (part.is_uneven ? 4U : 0U);
  return detail::mix(detail::mix(detail::mix(signature, kinds), part.count), marks);
}

std::string describe(const divergence& found, int peer) {
  switch (found.kind) {
    case mismatch_kind::unlocated:
      return fmt::format(
          "operations differ from rank {}'s somewhere after the first {} that both issued",
          peer,
          found.ordinal);
    case mismatch_kind::order:
      return fmt::format("order differs: {} comes first here, {} on rank {}",
                         describe(found.mine),
                         describe(found.theirs),
                         peer);
    case mismatch_kind::skipped_by_peer:
      return fmt::format("rank {} skipped {} and went on with {}",
                         peer,
                         describe(found.mine),
                         describe(found.theirs));
    case mismatch_kind::skipped_here:
      return fmt::format("{} of rank {} was skipped here, {} was issued in its place",
                         describe(found.theirs),
                         peer,
                         describe(found.mine));
    case mismatch_kind::operation:
    case mismatch_kind::dtype:
    case mismatch_kind::count:
    case mismatch_kind::reduction:
    case mismatch_kind::root:
    case mismatch_kind::path:
    case mismatch_kind::grouping:
    case mismatch_kind::capture:
    case mismatch_kind::unevenness: break;
  }
  return fmt::format("{} differs: {} here, {} on rank {}",
                     name_of(found.kind),
                     describe(found.mine),
                     describe(found.theirs),
                     peer);
}

}  // namespace spark_comm
