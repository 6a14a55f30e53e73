// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/shared_library.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/api.hpp>
#include <spark_comm/cuda/driver.hpp>

#include <exception>
#include <fmt/core.h>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace spark_comm::cuda {
namespace {

template <typename Function>
void resolve(const shared_library& from, const char* symbol, Function& slot) {
  void* const address = from.find(symbol);
  if (address == nullptr) {
    throw error{
        errc::not_supported,
        fmt::format(
            "{} lacks {}: a CUDA driver for CUDA 12.0 or newer is needed", from.name(), symbol)};
  }
  slot = reinterpret_cast<Function>(address);
}

api resolve_all(const shared_library& from) {
  api table;
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define SPARK_COMM_RESOLVE(name, arguments) resolve(from, #name, table.name);
  SPARK_COMM_CUDA_FUNCTIONS(SPARK_COMM_RESOLVE)
#undef SPARK_COMM_RESOLVE
  return table;
}

}  // namespace

errc errc_of(abi::result code) noexcept {
  // The results around stream capture: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED to _WRONG_THREAD.
  constexpr abi::result first_capture_error = abi::results::stream_capture_unsupported;
  constexpr abi::result last_capture_error = abi::results::stream_capture_wrong_thread;
  if (code >= first_capture_error && code <= last_capture_error) {
    return errc::invalid_usage;
  }
  switch (code) {
    case abi::results::invalid_value:
    case abi::results::invalid_device:
    case abi::results::invalid_handle:    return errc::invalid_argument;
    case abi::results::out_of_memory:     return errc::out_of_memory;
    case abi::results::no_binary_for_gpu:
    case abi::results::not_supported:     return errc::not_supported;
    // "Not ready" is a value that a poll handles; one that gets here was forgotten.
    case abi::results::not_ready: return errc::internal;
    default:                      return errc::device_failed;  // CUDA's enumeration is open
  }
}

driver driver::load(const std::string& library, diagnostics log) {
  const shared_library loaded = shared_library::open(library);
  const api table = resolve_all(loaded);
  std::string file = shared_library::file_of(reinterpret_cast<const void*>(table.cuInit));
  driver made{std::make_shared<const state>(
      state{.table = table, .log = std::move(log), .file = std::move(file)})};
  made.check(table.cuInit(0), "cuInit");
  return made;
}

driver driver::from_table(const api& table, diagnostics log) {
  return driver{
      std::make_shared<const state>(state{.table = table, .log = std::move(log), .file = {}})};
}

int driver::version() const {
  int version = 0;
  check(table().cuDriverGetVersion(&version), "cuDriverGetVersion");
  return version;
}

int driver::device_count() const {
  int count = 0;
  check(table().cuDeviceGetCount(&count), "cuDeviceGetCount");
  return count;
}

void driver::check(abi::result code, const char* function, std::source_location where) const {
  if (code != abi::results::success) [[unlikely]] {
    throw to_error(code, function, where);
  }
}

void driver::check_noexcept(abi::result code, const char* function) const noexcept {
  if (code == abi::results::success) {
    return;
  }
  try {
    log().report_once(severity::error,
                      fmt::format("{} returned {}", function, code),
                      to_error(code, function).what());
  } catch (const std::exception& failure) {
    log().report(failure, function);
  }
}

error driver::to_error(abi::result code, const char* function, std::source_location where) const {
  return error{
      errc_of(code), fmt::format("{} failed", function), {}, describe(code, function), where};
}

native_code driver::describe(abi::result code, const char* function) const {
  const char* name = nullptr;
  const char* text = nullptr;
  // Both leave the pointer null for a number that this driver does not know.
  static_cast<void>(table().cuGetErrorName(code, &name));
  static_cast<void>(table().cuGetErrorString(code, &text));
  return {.domain = native_domain::cuda,
          .number = code,
          .function = function,
          .text = fmt::format("{}: {}",
                              name == nullptr ? "unknown CUDA error" : name,
                              text == nullptr ? "no text" : text)};
}

}  // namespace spark_comm::cuda
