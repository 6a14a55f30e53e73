// SPDX-License-Identifier: AGPL-3.0-only
// Where NCCL is looked for, in which order, and what happens when it is not there.
#pragma once

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/nccl/library.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::nccl {

/// Who named a library.
enum class library_source : std::uint8_t {
  explicit_path,  ///< The program, by argument: this one or none.
  environment,    ///< SPARK_COMM_NCCL_LIBRARY: this one or none.
  standard_name,  ///< The loader's search for `libnccl.so.2`.
};

[[nodiscard]] SPARK_COMM_API std::string_view name_of(library_source source) noexcept;

/// A library to try.
struct library_candidate {
  std::string name;
  library_source source = library_source::standard_name;
};

/// The libraries to try, in order: the explicit path, the value of SPARK_COMM_NCCL_LIBRARY (the
/// caller has read it), `libnccl.so.2`. Empty strings are not set. A library that somebody named
/// ends the list: when it fails, another one in its place would be a surprise.
[[nodiscard]] SPARK_COMM_API std::vector<library_candidate> library_candidates(
    std::string_view explicit_path, std::string_view environment_value);

/// Loads the first candidate that works.
/// Throws: not_supported listing each candidate, who named it, and why it failed;
/// invalid_argument for an empty list.
[[nodiscard]] SPARK_COMM_API library find_and_load(const std::vector<library_candidate>& candidates,
                                                   const diagnostics& log);

}  // namespace spark_comm::nccl
