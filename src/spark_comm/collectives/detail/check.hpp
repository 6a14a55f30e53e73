// SPDX-License-Identifier: AGPL-3.0-only
// Argument checks of the operations. Everything found here is found before any native call: NCCL
// itself checks neither null nor foreign pointers, neither overflow nor alignment nor overlap.
#pragma once

#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstddef>
#include <string>

namespace spark_comm::detail {

/// Checks the arguments of one call; every failure is invalid_argument naming operation,
/// communicator, rank, count and type.
class argument_check {
 public:
  /// Throws for a data type outside the enumeration.
  argument_check(const communicator_core& core,
                 operation_kind kind,
                 std::size_t count_elements,
                 data_type dtype);

  /// Bytes of `blocks` x count elements. Throws when they overflow.
  [[nodiscard]] std::size_t bytes(std::size_t blocks = 1) const;

  /// Throws unless `address` is fit for `size_bytes` bytes: not null, aligned to the element, and
  /// not wrapping around the end of the address space.
  void require_buffer(const char* which, const void* address, std::size_t size_bytes) const;

  /// Throws when the ranges share a byte. Ranges that only touch are apart; what counts as "in
  /// place" differs between operations and is settled by them before.
  void require_disjoint(const void* in,
                        std::size_t in_bytes,
                        const void* out,
                        std::size_t out_bytes) const;

  void require_rank(const char* which, int value) const;

  /// Throws for an operation outside the enumeration, and for types that cannot be reduced here.
  void require_reducible(reduce_op op) const;

  [[noreturn]] void fail(const std::string& message) const;

 private:
  const communicator_core* core_;
  operation_kind kind_;
  std::size_t count_elements_;
  data_type dtype_;
};

/// Where block `rank` of a buffer begins; null stays null.
[[nodiscard]] const void* block_at(const void* base, std::size_t block_bytes, int rank) noexcept;

/// NCCL's number for a type that is only moved: everything of one byte travels as uint8, so that
/// libraries without fp8 can move it.
[[nodiscard]] int moved_type(data_type dtype) noexcept;

}  // namespace spark_comm::detail
