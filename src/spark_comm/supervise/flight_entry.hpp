// SPDX-License-Identifier: AGPL-3.0-only
// One operation as the flight record knows it, read back.
#pragma once

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spark_comm {

/// How far an operation got, as far as it was seen.
enum class flight_stage : std::uint8_t {
  submitted,  ///< Handed to the stream; not seen to run.
  started,    ///< Seen to run; not seen to end.
  completed,  ///< Ended well.
  failed,     ///< Ended with `code`.
};

inline constexpr flight_stage all_flight_stages[] = {
    flight_stage::submitted, flight_stage::started, flight_stage::completed, flight_stage::failed};

[[nodiscard]] SPARK_COMM_API std::string_view name_of(flight_stage stage) noexcept;

/// Times are nanoseconds of the rank's steady clock. `started` and `finished` are when the watchdog
/// saw it, so they may be late by its polling interval, and never early.
struct flight_entry {
  std::uint64_t index = 0;  ///< Position in the record, from 0.
  operation_record record;
  std::int64_t submitted_ns = 0;
  std::optional<std::int64_t> started_ns;
  std::optional<std::int64_t> finished_ns;
  flight_stage stage = flight_stage::submitted;
  std::optional<errc> code;
  native_domain domain = native_domain::none;
  std::int32_t native_number = 0;
  std::uint64_t signature = 0;
};

}  // namespace spark_comm
