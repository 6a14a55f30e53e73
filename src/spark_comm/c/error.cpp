// SPDX-License-Identifier: AGPL-3.0-only
// Errors as objects.
#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/c/detail/handles.hpp>
#include <spark_comm/c/error.h>
#include <spark_comm/c/types.h>
#include <spark_comm/core/error.hpp>

#include <cstdint>
#include <optional>

namespace {

using spark_comm::errc;
using spark_comm::native_domain;
using spark_comm::recovery;

static_assert(SPARK_COMM_INVALID_ARGUMENT == static_cast<int>(errc::invalid_argument));
static_assert(SPARK_COMM_INVALID_USAGE == static_cast<int>(errc::invalid_usage));
static_assert(SPARK_COMM_MISMATCH == static_cast<int>(errc::mismatch));
static_assert(SPARK_COMM_TIMED_OUT == static_cast<int>(errc::timed_out));
static_assert(SPARK_COMM_PEER_LOST == static_cast<int>(errc::peer_lost));
static_assert(SPARK_COMM_ABORTED == static_cast<int>(errc::aborted));
static_assert(SPARK_COMM_NOT_SUPPORTED == static_cast<int>(errc::not_supported));
static_assert(SPARK_COMM_OUT_OF_MEMORY == static_cast<int>(errc::out_of_memory));
static_assert(SPARK_COMM_DEVICE_FAILED == static_cast<int>(errc::device_failed));
static_assert(SPARK_COMM_SYSTEM_FAILED == static_cast<int>(errc::system_failed));
static_assert(SPARK_COMM_INTERNAL == static_cast<int>(errc::internal));
static_assert(SPARK_COMM_FIX_CALL == static_cast<int>(recovery::fix_call));
static_assert(SPARK_COMM_RETRY == static_cast<int>(recovery::retry));
static_assert(SPARK_COMM_RECONNECT == static_cast<int>(recovery::reconnect));
static_assert(SPARK_COMM_RESTART_PROCESS == static_cast<int>(recovery::restart_process));
static_assert(SPARK_COMM_NATIVE_NONE == static_cast<int>(native_domain::none));
static_assert(SPARK_COMM_NATIVE_NCCL == static_cast<int>(native_domain::nccl));
static_assert(SPARK_COMM_NATIVE_CUDA == static_cast<int>(native_domain::cuda));
static_assert(SPARK_COMM_NATIVE_SYSTEM == static_cast<int>(native_domain::system));

template <typename T>
spark_comm_optional optional_of(const std::optional<T>& value) noexcept {
  if (!value) {
    return {};
  }
  return {.value = static_cast<std::int64_t>(*value), .is_set = 1};
}

spark_comm_error_details details_of(const spark_comm_error& error) {
  const spark_comm::error& cause = error.value;
  const spark_comm::error_context& context = cause.context();
  std::optional<std::int64_t> deadline_ns;
  if (context.deadline) {
    deadline_ns = context.deadline->count();
  }
  return {.struct_size = 0,
          .code = static_cast<spark_comm_code>(cause.kind()),
          .recovery = static_cast<spark_comm_recovery>(cause.recovery()),
          .message = cause.message().c_str(),
          .communicator = context.communicator.c_str(),
          .operation = context.operation.c_str(),
          .rank = context.rank,
          .world_size = context.world_size,
          .device = context.device,
          .native_domain = static_cast<spark_comm_native_domain>(cause.native().domain),
          .native_number = cause.native().number,
          .native_function = cause.native().function.c_str(),
          .native_text = cause.native().text.c_str(),
          .sequence = optional_of(context.sequence),
          .count_elements = optional_of(context.count_elements),
          .dtype = optional_of(context.dtype),
          .deadline_ns = optional_of(deadline_ns),
          .peers = error.peers.data(),
          .peer_count = error.peers.size(),
          .source_file = cause.where().file_name(),
          .source_line = cause.where().line(),
          .reserved = 0};
}

}  // namespace

const char* spark_comm_error_line(const spark_comm_error* error) {
  return error == nullptr ? "no memory was left to say what failed [out_of_memory, retry]"
                          : error->value.what();
}

spark_comm_code spark_comm_error_code(const spark_comm_error* error) {
  return error == nullptr ? SPARK_COMM_OUT_OF_MEMORY
                          : static_cast<spark_comm_code>(error->value.kind());
}

spark_comm_recovery spark_comm_error_recovery(const spark_comm_error* error) {
  return error == nullptr ? SPARK_COMM_RETRY
                          : static_cast<spark_comm_recovery>(error->value.recovery());
}

spark_comm_code spark_comm_error_describe(const spark_comm_error* error,
                                          spark_comm_error_details* details) {
  return spark_comm::c::guarded(__func__, nullptr, [&](const auto& check) {
    check.write(details, details_of(check.deref(error, "error")), "details");
  });
}

const char* spark_comm_code_name(spark_comm_code code) {
  return code == SPARK_COMM_OK ? "ok" : name_of(spark_comm::c::any_of<errc>(code)).data();
}

const char* spark_comm_recovery_name(spark_comm_recovery recovery) {
  return name_of(spark_comm::c::any_of<enum spark_comm::recovery>(recovery)).data();
}

void spark_comm_error_destroy(spark_comm_error* error) {
  delete error;
}
