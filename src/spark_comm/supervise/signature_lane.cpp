// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/prefetch.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/signature.hpp>
#include <spark_comm/supervise/signature_lane.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace spark_comm {
namespace {

// NOLINTNEXTLINE(performance-enum-size): an index
enum word : std::size_t { commit, kinds, count, sequence, marks, signature };

std::uint64_t pack_kinds(const operation_record& record) noexcept {
  return static_cast<std::uint64_t>(record.kind) | static_cast<std::uint64_t>(record.dtype) << 8U |
         static_cast<std::uint64_t>(record.op) << 16U |
         static_cast<std::uint64_t>(record.path) << 24U |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(record.root_or_peer)) << 32U;
}

}  // namespace

signature_lane::signature_lane(std::size_t capacity)
    : mask_(std::bit_ceil(capacity) - 1), entries_(std::make_unique<entry[]>(mask_ + 1)) {}

std::uint64_t signature_lane::append(operation_record& record) noexcept {
  const std::uint64_t ordinal = submitted_.load(std::memory_order_relaxed) + 1;
  record.ordinal = ordinal;
  signature_ = fold(signature_, record);
  entry& target = entries_[ordinal & mask_];
  // Release, each: whoever sees a new word also sees that the entry was not whole then.
  target[word::commit].store(0, std::memory_order_relaxed);
  target[word::kinds].store(pack_kinds(record), std::memory_order_release);
  target[word::count].store(record.count_elements, std::memory_order_release);
  target[word::sequence].store(record.sequence, std::memory_order_release);
  target[word::marks].store(record.flags, std::memory_order_release);
  target[word::signature].store(signature_, std::memory_order_release);
  target[word::commit].store(ordinal, std::memory_order_release);
  submitted_.store(ordinal, std::memory_order_release);
  prefetch_for_writing(&entries_[(ordinal + 1) & mask_]);
  return signature_;
}

std::optional<signature_lane::snapshot> signature_lane::read(std::uint64_t ordinal) const noexcept {
  const entry& source = entries_[ordinal & mask_];
  snapshot copy{};
  // Acquire, each: the second look at `commit` must not come before any of them.
  for (std::size_t each = 0; each < entry_words; ++each) {
    copy[each] = source[each].load(std::memory_order_acquire);
  }
  const bool is_whole = copy[word::commit] == ordinal && ordinal != 0 &&
                        source[word::commit].load(std::memory_order_relaxed) == ordinal;
  return is_whole ? std::optional{copy} : std::nullopt;
}

std::optional<operation_record> signature_lane::find(std::uint64_t ordinal) const noexcept {
  const auto copy = read(ordinal);
  if (!copy) {
    return std::nullopt;
  }
  const std::uint64_t packed = (*copy)[word::kinds];
  operation_record record;
  record.sequence = (*copy)[word::sequence];
  record.ordinal = ordinal;
  record.count_elements = (*copy)[word::count];
  record.root_or_peer = static_cast<std::int32_t>(packed >> 32U);
  record.kind = static_cast<operation_kind>(packed & 0xffU);
  record.dtype = static_cast<data_type>(packed >> 8U & 0xffU);
  record.op = static_cast<reduce_op>(packed >> 16U & 0xffU);
  record.path = static_cast<path_kind>(packed >> 24U & 0xffU);
  record.flags = static_cast<std::uint32_t>((*copy)[word::marks]);
  return record;
}

std::optional<std::uint64_t> signature_lane::signature_after(std::uint64_t ordinal) const noexcept {
  if (ordinal == 0) {
    return empty_signature;
  }
  const auto copy = read(ordinal);
  return copy ? std::optional{(*copy)[word::signature]} : std::nullopt;
}

}  // namespace spark_comm
