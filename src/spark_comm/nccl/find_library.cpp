// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/nccl/find_library.hpp>
#include <spark_comm/nccl/library.hpp>

#include <fmt/core.h>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::nccl {

std::string_view name_of(library_source source) noexcept {
  switch (source) {
    case library_source::explicit_path: return "named by the program";
    case library_source::environment:   return "named by SPARK_COMM_NCCL_LIBRARY";
    case library_source::standard_name: return "standard name";
  }
  return "unknown";
}

std::vector<library_candidate> library_candidates(std::string_view explicit_path,
                                                  std::string_view environment_value) {
  if (!explicit_path.empty()) {
    return {{std::string{explicit_path}, library_source::explicit_path}};
  }
  if (!environment_value.empty()) {
    return {{std::string{environment_value}, library_source::environment}};
  }
  return {{"libnccl.so.2", library_source::standard_name}};
}

library find_and_load(const std::vector<library_candidate>& candidates, const diagnostics& log) {
  if (candidates.empty()) {
    throw error{errc::invalid_argument, "no NCCL library to try"};
  }
  std::string tried;
  for (const library_candidate& candidate : candidates) {
    try {
      return library::load(candidate.name, log);
    } catch (const error& failure) {
      tried += fmt::format("{}'{}' ({}): {}",
                           tried.empty() ? "" : "; ",
                           candidate.name,
                           name_of(candidate.source),
                           failure.message());
    }
    if (candidate.source != library_source::standard_name) {
      break;  // what somebody named is never replaced in silence
    }
  }
  throw error{errc::not_supported, fmt::format("no NCCL could be loaded; tried {}", tried)};
}

}  // namespace spark_comm::nccl
