// SPDX-License-Identifier: AGPL-3.0-only
// All-reduce. Short: everybody reads everybody and reduces all of it. Long: in pieces, each rank
// reduces its part of a piece and shows the result; three pieces are in flight.
#include "board.hpp"
#include "collectives.hpp"
#include "communicator.hpp"
#include "reduce.hpp"
#include "segment_layout.hpp"
#include "task.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace spark_comm::host::nccl {
namespace {

// Up to here one exchange of slots is cheaper than two, though every rank does all the arithmetic.
constexpr std::size_t short_bytes = std::size_t{32} * 1024;

using input_list = std::array<const std::byte*, most_ranks>;

// The elements of a piece that one rank reduces.
struct share {
  std::size_t begin;
  std::size_t bytes;
};

share share_of(int rank, int ranks, std::size_t piece) noexcept {
  const auto world = static_cast<std::size_t>(ranks);
  const std::size_t each = (piece / world / line_bytes + 1) * line_bytes;
  const std::size_t begin = std::min(piece, each * static_cast<std::size_t>(rank));
  return {.begin = begin, .bytes = std::min(each, piece - begin)};
}

// Reduces `[begin, begin + bytes)` of the slots of `step`, all ranks in order, into `out`.
void reduce_slots(
    const board& b, const reduction& how, std::uint64_t step, share part, std::byte* out) noexcept {
  input_list inputs;
  const auto world = static_cast<std::size_t>(b.ranks());
  for (std::size_t rank = 0; rank < world; ++rank) {
    inputs[rank] = b.slot(static_cast<int>(rank), step) + part.begin;
  }
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): the type was checked
  reduce_elements(how, inputs.data(), world, out, part.bytes / element_bytes(how.dtype));
}

// Copies what the other ranks reduced of a piece, shown in `step`, into `out`.
void collect_shares(const board& b,
                    std::uint64_t step,
                    std::size_t piece,
                    std::byte* out) noexcept {
  for (int rank = 0; rank < b.ranks(); ++rank) {
    if (rank != b.rank()) {
      const share theirs = share_of(rank, b.ranks(), piece);
      copy_bytes(out + theirs.begin, b.slot(rank, step) + theirs.begin, theirs.bytes);
    }
  }
}

task all_reduce_short(communicator& comm, const operation& op) {
  const board b{comm};
  if (!co_await b.can_fill()) {
    co_return;
  }
  copy_bytes(b.slot(b.rank()), op.in, op.bytes());
  b.post();
  if (!co_await b.are_filled()) {
    co_return;
  }
  reduce_slots(b, op.how, b.step(), {.begin = 0, .bytes = op.bytes()}, op.out);
  b.finish();
}

// In round t a rank stages piece t, reduces its share of piece t - 1 and collects piece t - 2. The
// steps of a round: 2t for the staged piece, 2t + 1 for the reduced share.
task all_reduce_long(communicator& comm, const operation& op) {
  const board b{comm};
  const pieces cut{.bytes = op.bytes(), .piece = slot_bytes};
  const std::uint64_t first = b.step();
  for (std::size_t t = 0; t < cut.count() + 2; ++t) {
    const std::uint64_t step = first + 2 * t;
    if (t < cut.count()) {
      if (!co_await b.can_fill(step)) {
        co_return;
      }
      copy_bytes(b.slot(b.rank(), step), op.in + cut.begin(t), cut.length(t));
    }
    b.post(step);
    if (t >= 1 && t - 1 < cut.count()) {
      if (!co_await b.are_filled(step - 2) || !co_await b.can_fill(step + 1)) {
        co_return;
      }
      const share mine = share_of(b.rank(), b.ranks(), cut.length(t - 1));
      std::byte* const reduced = b.slot(b.rank(), step + 1) + mine.begin;
      reduce_slots(b, op.how, step - 2, mine, reduced);
      copy_bytes(op.out + cut.begin(t - 1) + mine.begin, reduced, mine.bytes);
    }
    b.post(step + 1);
    if (t >= 2) {
      if (!co_await b.are_filled(step - 1)) {
        co_return;
      }
      collect_shares(b, step - 1, cut.length(t - 2), op.out + cut.begin(t - 2));
    }
    // This round read the steps 2t - 2 and 2t - 1, and nothing older is needed.
    b.done_before(step);
  }
  b.finish(2 * (cut.count() + 2));
}

}  // namespace

task all_reduce(communicator& comm, const operation& op) {
  return op.bytes() <= short_bytes ? all_reduce_short(comm, op) : all_reduce_long(comm, op);
}

}  // namespace spark_comm::host::nccl
