// SPDX-License-Identifier: AGPL-3.0-only
// Runtimes: loading, what they are and what they can do.
#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/c/detail/handles.hpp>
#include <spark_comm/c/runtime.h>
#include <spark_comm/c/types.h>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/nccl/library.hpp>

#include <algorithm>
#include <cstdint>

namespace {

using spark_comm::diagnostic;
using spark_comm::diagnostics;
using spark_comm::runtime_kind;
using spark_comm::severity;
using spark_comm::nccl::capability;

static_assert(SPARK_COMM_RUNTIME_AUTOMATIC == static_cast<int>(runtime_kind::automatic));
static_assert(SPARK_COMM_RUNTIME_NVIDIA == static_cast<int>(runtime_kind::nvidia));
static_assert(SPARK_COMM_RUNTIME_HOST == static_cast<int>(runtime_kind::host));
static_assert(SPARK_COMM_SEVERITY_INFO == static_cast<int>(severity::info));
static_assert(SPARK_COMM_SEVERITY_WARNING == static_cast<int>(severity::warning));
static_assert(SPARK_COMM_SEVERITY_ERROR == static_cast<int>(severity::error));
static_assert(SPARK_COMM_CAPABILITY_WINDOW == static_cast<int>(capability::window));
static_assert(SPARK_COMM_CAPABILITY_ALL_TO_ALL == static_cast<int>(capability::all_to_all));
static_assert(SPARK_COMM_CAPABILITY_REVOKE == static_cast<int>(capability::revoke));
static_assert(SPARK_COMM_CAPABILITY_FP8 == static_cast<int>(capability::fp8));

constexpr runtime_kind all_runtime_kinds[] = {
    runtime_kind::automatic, runtime_kind::nvidia, runtime_kind::host};

diagnostics log_of(const spark_comm_runtime_options& options) {
  if (options.sink == nullptr) {
    return diagnostics{};
  }
  return diagnostics{[sink = options.sink, data = options.sink_data](const diagnostic& message) {
    sink(data, static_cast<spark_comm_severity>(message.level), message.text.c_str());
  }};
}

spark_comm::runtime_options options_of(const spark_comm_runtime_options& given) {
  spark_comm::runtime_options options = spark_comm::runtime_options::from_environment();
  if (given.nccl_library != nullptr) {
    options.nccl_library = given.nccl_library;
  }
  if (given.host_library != nullptr) {
    options.host_library = given.host_library;
  }
  options.log = log_of(given);
  return options;
}

}  // namespace

spark_comm_code spark_comm_runtime_load(spark_comm_runtime_kind kind,
                                        const spark_comm_runtime_options* options,
                                        spark_comm_runtime** loaded,
                                        spark_comm_error** failure) {
  return spark_comm::c::created(__func__, loaded, failure, [&](const auto& check) {
    return spark_comm::runtime::load(check.member_of(all_runtime_kinds, kind, "runtime kind"),
                                     options_of(check.read(options)));
  });
}

spark_comm_code spark_comm_runtime_describe(const spark_comm_runtime* loaded,
                                            spark_comm_runtime_info* info,
                                            spark_comm_error** failure) {
  return spark_comm::c::guarded(__func__, failure, [&](const auto& check) {
    const spark_comm::runtime& runtime = check.deref(loaded, "the runtime").value;
    check.write(info,
                {.struct_size = 0,
                 .kind = static_cast<spark_comm_runtime_kind>(runtime.kind()),
                 .nccl_version = runtime.library().version(),
                 .driver_version = runtime.driver().version(),
                 .device_count = runtime.driver().device_count(),
                 .nccl_file = runtime.library().file().c_str(),
                 .nccl_build_id = runtime.library().build_id().c_str(),
                 .driver_file = runtime.driver().file().c_str(),
                 .description = runtime.description().c_str()},
                "info");
  });
}

std::int32_t spark_comm_runtime_supports(const spark_comm_runtime* loaded,
                                         spark_comm_capability what) {
  if (loaded == nullptr) {
    return 0;
  }
  const auto& known = spark_comm::nccl::all_capabilities;
  const bool is_known = std::ranges::any_of(
      known, [what](capability each) { return static_cast<std::int32_t>(each) == what; });
  return is_known && loaded->value.library().supports(static_cast<capability>(what)) ? 1 : 0;
}

void spark_comm_runtime_destroy(spark_comm_runtime* loaded) {
  delete loaded;
}
