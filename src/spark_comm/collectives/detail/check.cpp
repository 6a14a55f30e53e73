// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/collectives/detail/check.hpp>
#include <spark_comm/collectives/spans.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/group_context.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <string>

namespace spark_comm::detail {
namespace {

std::uintptr_t as_number(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

}  // namespace

argument_check::argument_check(const communicator_core& core,
                               operation_kind kind,
                               std::size_t count_elements,
                               data_type dtype)
    : core_(&core), kind_(kind), count_elements_(count_elements), dtype_(dtype) {
  if (size_of(dtype) == 0) {
    fail(fmt::format("data type {} is not one of spark_comm's", static_cast<int>(dtype)));
  }
}

void argument_check::fail(const std::string& message) const {
  error_context context = core_->context();
  context.operation = name_of(kind_);
  context.count_elements = count_elements_;
  context.dtype = dtype_;
  throw_refusal(error{errc::invalid_argument, message, context});
}

std::size_t argument_check::bytes(std::size_t blocks) const {
  std::size_t total = 0;
  if (__builtin_mul_overflow(count_elements_, size_of(dtype_), &total) ||
      __builtin_mul_overflow(total, blocks, &total)) {
    fail(fmt::format("{} x {} elements of {} bytes overflow a size of {} bits",
                     blocks,
                     count_elements_,
                     size_of(dtype_),
                     std::numeric_limits<std::size_t>::digits));
  }
  return total;
}

void argument_check::require_buffer(const char* which,
                                    const void* address,
                                    std::size_t size_bytes) const {
  if (size_bytes == 0) {
    return;
  }
  if (address == nullptr) {
    fail(fmt::format("{} is null", which));
  }
  if (as_number(address) % size_of(dtype_) != 0) {
    fail(fmt::format(
        "{} at {} is not aligned to its elements of {} bytes", which, address, size_of(dtype_)));
  }
  if (as_number(address) > std::numeric_limits<std::uintptr_t>::max() - size_bytes) {
    fail(fmt::format(
        "{} at {} and {} bytes wrap around the address space", which, address, size_bytes));
  }
}

void argument_check::require_disjoint(const void* in,
                                      std::size_t in_bytes,
                                      const void* out,
                                      std::size_t out_bytes) const {
  const std::uintptr_t in_begin = as_number(in);
  const std::uintptr_t out_begin = as_number(out);
  if (in_bytes != 0 && out_bytes != 0 && in_begin < out_begin + out_bytes &&
      out_begin < in_begin + in_bytes) {
    fail(fmt::format("in ({}, {} bytes) and out ({}, {} bytes) overlap, and not as in place",
                     in,
                     in_bytes,
                     out,
                     out_bytes));
  }
}

void argument_check::require_rank(const char* which, int value) const {
  if (value < 0 || value >= core_->place().world_size) {
    fail(fmt::format("{} {} is outside the world: 0 to {} are accepted",
                     which,
                     value,
                     core_->place().world_size - 1));
  }
}

void argument_check::require_reducible(reduce_op op) const {
  if (op > reduce_op::avg) {
    fail(fmt::format("reduce operation {} is not one of spark_comm's", static_cast<int>(op)));
  }
  if (!can_reduce(dtype_)) {
    fail("opaque bytes can be moved, not reduced; name the element type");
  }
  if (is_fp8(dtype_) && !core_->can_reduce_fp8()) {
    fail("fp8 can be moved, not reduced, here: it takes NCCL 2.24 and compute capability 9.0");
  }
}

const void* block_at(const void* base, std::size_t block_bytes, int rank) noexcept {
  return base == nullptr
             ? nullptr
             : static_cast<const std::byte*>(base) + block_bytes * static_cast<std::size_t>(rank);
}

int moved_type(data_type dtype) noexcept {
  return static_cast<int>(size_of(dtype) == 1 ? data_type::uint8 : dtype);
}

void require_counts(const communicator& comm,
                    const char* operation,
                    std::size_t in_elements,
                    std::size_t out_elements,
                    std::size_t factor) {
  std::size_t expected = 0;
  if (!__builtin_mul_overflow(in_elements, factor, &expected) && expected == out_elements) {
    return;
  }
  error_context context = comm.core().context();
  context.operation = operation;
  throw_refusal(error{errc::invalid_argument,
                      fmt::format("spans of {} and {} elements do not fit: the longer must be {} x "
                                  "the shorter",
                                  in_elements,
                                  out_elements,
                                  factor),
                      context});
}

}  // namespace spark_comm::detail
