// SPDX-License-Identifier: AGPL-3.0-only
// The one exception type of the library: who, what, where, and what to do next.
#pragma once

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace spark_comm {

/// What went wrong. Each member says what the caller can make of it.
enum class errc : std::uint8_t {
  invalid_argument =
      1,          ///< A value is wrong by itself; found before any native call: mend the call.
  invalid_usage,  ///< The call is not allowed in this state, thread or process.
  mismatch,       ///< Ranks disagree (world size, version, operation, generation).
  timed_out,      ///< The deadline passed.
  peer_lost,      ///< A peer closed, died or refused.
  aborted,        ///< The communicator was aborted, by this or another thread.
  not_supported,  ///< The loaded library or device cannot do it; the text says what can.
  out_of_memory,  ///< Free some memory and try again.
  device_failed,  ///< A CUDA call failed; a sticky error needs a new process.
  system_failed,  ///< An operating-system call failed; `native()` holds errno.
  internal,       ///< None of the above, an unknown result code included.
};

inline constexpr errc all_errcs[] = {
    errc::invalid_argument,
    errc::invalid_usage,
    errc::mismatch,
    errc::timed_out,
    errc::peer_lost,
    errc::aborted,
    errc::not_supported,
    errc::out_of_memory,
    errc::device_failed,
    errc::system_failed,
    errc::internal,
};

/// What the caller can do about an error.
enum class recovery : std::uint8_t {
  fix_call,         ///< Nothing changed; call again with other values.
  retry,            ///< Nothing is broken; the same call may succeed later.
  reconnect,        ///< The communicator is broken; `reconnect` or a new join mends it.
  restart_process,  ///< The device context is lost; only a new process mends it.
};

[[nodiscard]] SPARK_COMM_API std::string_view name_of(errc code) noexcept;
[[nodiscard]] SPARK_COMM_API std::string_view name_of(recovery action) noexcept;

[[nodiscard]] SPARK_COMM_API const std::error_category& error_category() noexcept;
[[nodiscard]] SPARK_COMM_API std::error_code make_error_code(errc code) noexcept;

/// Whose number `native_code::number` is.
enum class native_domain : std::uint8_t {
  none,    ///< No native call was involved.
  nccl,    ///< An ncclResult_t.
  cuda,    ///< A CUresult.
  system,  ///< An errno value.
};

/// The native failure behind an error, kept even when its number is unknown to us.
struct native_code {
  native_domain domain = native_domain::none;
  std::int64_t number = 0;
  std::string function = {};  ///< The native function's name.
  std::string text = {};      ///< The vendor's text for the number, and its last-error string.
};

/// Whatever was known about the failing call; empty fields were not known.
struct error_context {
  std::string communicator = {};
  int rank = -1;
  int world_size = 0;
  int device = -1;
  std::string operation = {};
  std::optional<std::uint64_t> sequence = {};
  std::optional<std::size_t> count_elements = {};
  std::optional<data_type> dtype = {};
  std::vector<int> peers = {};  ///< Ranks that are missing, lost, behind or in disagreement.
  std::optional<duration> deadline = {};
};

/// What to do about `code` when `native` is behind it.
[[nodiscard]] SPARK_COMM_API recovery recovery_for(errc code, const native_code& native) noexcept;

/// The library's exception.
///
/// `what()` is one line, most specific first, because logs are read with grep:
/// operation and sequence number, communicator, rank of world, the message, peers, deadline,
/// native function and text, code and recovery, file and line.
class SPARK_COMM_API error : public std::system_error {
 public:
  error(errc code,
        std::string message,
        error_context context = {},
        native_code native = {},
        std::source_location where = std::source_location::current());

  [[nodiscard]] const char* what() const noexcept override { return line_.c_str(); }

  /// The code as our enumeration.
  [[nodiscard]] errc kind() const noexcept { return kind_; }

  [[nodiscard]] enum recovery recovery() const noexcept { return recovery_for(kind_, native_); }

  [[nodiscard]] const std::string& message() const noexcept { return message_; }

  [[nodiscard]] const error_context& context() const noexcept { return context_; }

  [[nodiscard]] const native_code& native() const noexcept { return native_; }

  [[nodiscard]] const std::source_location& where() const noexcept { return where_; }

  /// The same error with what an outer layer knows filled into the fields that are still empty.
  [[nodiscard]] error with_context(const error_context& outer) const;

 private:
  errc kind_;
  std::string message_;
  error_context context_;
  native_code native_;
  std::source_location where_;
  std::string line_;
};

/// Throws `system_failed` for an errno value (`out_of_memory` for ENOMEM).
[[noreturn]] SPARK_COMM_API void throw_errno(
    std::string_view function,
    std::string message,
    int number,
    std::source_location where = std::source_location::current());

}  // namespace spark_comm

template <>
struct std::is_error_code_enum<spark_comm::errc> : std::true_type {};
