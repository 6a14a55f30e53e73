// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/shared_library.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/nccl/detail/build_id.hpp>
#include <spark_comm/nccl/library.hpp>

#include <cstring>
#include <fmt/core.h>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace spark_comm::nccl {
namespace {

// The size of NCCL's buffer for its last error.
constexpr std::size_t longest_last_error = 1024;

template <typename Function>
void resolve_optional(const shared_library& from, const char* symbol, Function& slot) {
  slot = reinterpret_cast<Function>(from.find(symbol));
}

template <typename Function>
void resolve_required(const shared_library& from, int version, const char* symbol, Function& slot) {
  resolve_optional(from, symbol, slot);
  if (slot == nullptr) {
    throw error{
        errc::not_supported,
        fmt::format(
            "{} says it is NCCL {} but lacks {}", from.name(), version_text(version), symbol)};
  }
}

// Asked before anything else is resolved, so that an old library is called old and not incomplete.
int version_of_library(const shared_library& from) {
  decltype(api::ncclGetVersion) get_version = nullptr;
  resolve_optional(from, "ncclGetVersion", get_version);
  if (get_version == nullptr) {
    throw error{errc::not_supported,
                fmt::format("{} is not NCCL: it has no ncclGetVersion", from.name())};
  }
  int version = 0;
  const abi::result code = get_version(&version);
  if (code != abi::results::success) {
    throw error{
        errc::not_supported,
        fmt::format("{} does not tell its version: ncclGetVersion returned {}", from.name(), code)};
  }
  return version;
}

void require_floor(std::string_view name, int version) {
  if (version < floor_version) {
    throw error{errc::not_supported,
                fmt::format("{} is NCCL {}; {} or newer is needed",
                            name,
                            version_text(version),
                            version_text(floor_version))};
  }
}

api resolve_all(const shared_library& from, int version) {
  api table;
// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define SPARK_COMM_RESOLVE(type, name, arguments) \
  resolve_required(from, version, #name, table.name);
#define SPARK_COMM_RESOLVE_OPTIONAL(type, name, arguments, since) \
  resolve_optional(from, #name, table.name);
  // NOLINTEND(cppcoreguidelines-macro-usage)
  SPARK_COMM_NCCL_REQUIRED_FUNCTIONS(SPARK_COMM_RESOLVE)
  SPARK_COMM_NCCL_OPTIONAL_FUNCTIONS(SPARK_COMM_RESOLVE_OPTIONAL)
#undef SPARK_COMM_RESOLVE
#undef SPARK_COMM_RESOLVE_OPTIONAL
  return table;
}

// One buffer serves the whole process and any thread may write it, so it is copied at once and
// never read past its end.
std::string copy_last_error(const api& table) {
  const char* const text = table.ncclGetLastError(nullptr);
  return text == nullptr ? std::string{} : std::string{text, strnlen(text, longest_last_error)};
}

}  // namespace

std::string_view name_of(capability what) noexcept {
  switch (what) {
    case capability::window:     return "window";
    case capability::all_to_all: return "all_to_all";
    case capability::revoke:     return "revoke";
    case capability::fp8:        return "fp8";
  }
  return "unknown";
}

int version_of(capability what) noexcept {
  switch (what) {
    case capability::window:     return 22703;
    case capability::all_to_all: return 22803;
    case capability::revoke:     return 22807;
    case capability::fp8:        return 22403;
  }
  return 0;
}

std::string version_text(int version_code) {
  // Up to 2.8 the major version stood in the thousands.
  const int major_unit = version_code < 10000 ? 1000 : 10000;
  return fmt::format(
      "{}.{}.{}", version_code / major_unit, version_code % major_unit / 100, version_code % 100);
}

errc errc_of(abi::result code) noexcept {
  switch (code) {
    case abi::results::unhandled_cuda_error: return errc::device_failed;
    case abi::results::system_error:         return errc::system_failed;
    case abi::results::invalid_argument:     return errc::invalid_argument;
    case abi::results::invalid_usage:        return errc::invalid_usage;
    case abi::results::remote_error:         return errc::peer_lost;
    case abi::results::timeout:              return errc::timed_out;
    // In progress is a value that the caller handles; one that gets here was forgotten.
    case abi::results::in_progress:
    case abi::results::internal_error:
    default:                           return errc::internal;  // NCCL's enumeration is open
  }
}

library library::load(const std::string& name, diagnostics log) {
  const shared_library loaded = shared_library::open(name);
  const int version = version_of_library(loaded);
  require_floor(name, version);
  const api table = resolve_all(loaded, version);
  std::string file = shared_library::file_of(reinterpret_cast<const void*>(table.ncclGetVersion));
  std::string build_id = detail::build_id_of_file(file);
  return library{std::make_shared<const state>(
      state{table, std::move(log), version, std::move(file), std::move(build_id)})};
}

library library::from_table(const api& table, diagnostics log) {
  int version = 0;
  const abi::result code = table.ncclGetVersion(&version);
  if (code != abi::results::success) {
    throw error{
        errc::not_supported,
        fmt::format("the table does not tell its version: ncclGetVersion returned {}", code)};
  }
  require_floor("the table", version);
  return library{std::make_shared<const state>(state{table, std::move(log), version, {}, {}})};
}

bool library::supports(capability what) const noexcept {
  const api& calls = state_->table;
  if (state_->version < version_of(what)) {
    return false;
  }
  switch (what) {
    case capability::window:
      return calls.ncclCommWindowRegister != nullptr && calls.ncclCommWindowDeregister != nullptr;
    case capability::all_to_all: return calls.ncclAlltoAll != nullptr;
    case capability::revoke:     return calls.ncclCommRevoke != nullptr;
    case capability::fp8:        return true;  // data types, not calls
  }
  return false;
}

void library::require(capability what, std::source_location where) const {
  if (!supports(what)) {
    throw error{errc::not_supported,
                fmt::format("{} needs NCCL {} or newer; loaded is {}",
                            name_of(what),
                            version_text(version_of(what)),
                            version_text(state_->version)),
                {},
                {},
                where};
  }
}

void library::check(abi::result code, const char* function, std::source_location where) const {
  if (code != abi::results::success) [[unlikely]] {
    throw to_error(code, function, where);
  }
}

error library::to_error(abi::result code, const char* function, std::source_location where) const {
  native_code native = describe(code, function);
  return error{errc_of(code), fmt::format("{} failed", function), {}, std::move(native), where};
}

native_code library::describe(abi::result code, const char* function) const {
  const std::string last_error = copy_last_error(state_->table);  // first, before it is overwritten
  const char* const known_text = state_->table.ncclGetErrorString(code);
  std::string text = known_text == nullptr ? "no text" : known_text;
  if (!last_error.empty()) {
    text += fmt::format("; last NCCL warning in this process: {}", last_error);
  }
  return {
      .domain = native_domain::nccl, .number = code, .function = function, .text = std::move(text)};
}

}  // namespace spark_comm::nccl
