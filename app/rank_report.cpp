// SPDX-License-Identifier: AGPL-3.0-only
#include "rank_report.hpp"

#include "exit_code.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace spark_comm::app {

// By name, found by nlohmann's conversions.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(listening_report, address)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ready_report,
                                   rank,
                                   world_size,
                                   runtime,
                                   description,
                                   device,
                                   driver_version,
                                   nccl_version,
                                   rows)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    measured_report, row, in_place, size_bytes, count, wrong, microseconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    checked_report, operation, passed, failed, not_supported, failures, digest)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(failed_report, exit_code, text)

namespace {

template <typename Report>
constexpr const char* kind_of() {
  if constexpr (std::is_same_v<Report, listening_report>) {
    return "listening";
  } else if constexpr (std::is_same_v<Report, ready_report>) {
    return "ready";
  } else if constexpr (std::is_same_v<Report, measured_report>) {
    return "measured";
  } else if constexpr (std::is_same_v<Report, checked_report>) {
    return "checked";
  } else {
    static_assert(std::is_same_v<Report, failed_report>);
    return "failed";
  }
}

/// The report of the named kind, tried in the order of the variant.
template <typename... Reports>
rank_report decode_as(const nlohmann::json& object, const std::variant<Reports...>* /*kinds*/) {
  const std::string kind = object.at("kind");
  rank_report report;
  const bool is_known =
      ((kind == kind_of<Reports>() && (report = object.get<Reports>(), true)) || ...);
  if (!is_known) {
    throw failure(exit_code::failed, fmt::format("a rank sent a report of unknown kind {}", kind));
  }
  return report;
}

}  // namespace

std::string encode(const rank_report& report) {
  return std::visit(
      [](const auto& known) {
        nlohmann::json object = known;
        object["kind"] = kind_of<std::remove_cvref_t<decltype(known)>>();
        // Texts of libraries need not be UTF-8.
        return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      },
      report);
}

rank_report decode(std::string_view line) {
  try {
    return decode_as(nlohmann::json::parse(line), static_cast<const rank_report*>(nullptr));
  } catch (const nlohmann::json::exception& caught) {
    throw failure(exit_code::failed,
                  fmt::format("a rank sent no report but \"{:.80}\" ({})", line, caught.what()));
  }
}

}  // namespace spark_comm::app
