// SPDX-License-Identifier: AGPL-3.0-only
// What a program may say about the ways its collectives go.
#pragma once

#include <spark_comm/core/export.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace spark_comm {

/// The same on all ranks, or the join is refused: ranks that chose differently would wait for each
/// other.
struct SPARK_COMM_API path_options {
  /// `SPARK_COMM_PATH_TABLE`: a file written by `spark-comm tune`; empty: the defaults of the
  /// runtime.
  std::string table_file = {};
  /// The text of a table; where it is not empty, it stands in place of the file.
  std::string table = {};
  /// Largest message that goes another way than NCCL, by which buffers are sized. 0: all go by
  /// NCCL.
  std::size_t max_bytes = std::size_t{1} << 20U;
  /// Streams that may have such messages in flight at a time; the first that are used. Others go by
  /// NCCL.
  int max_streams = 4;

  /// The variable named above, read now.
  [[nodiscard]] static path_options from_environment();

  /// Throws: invalid_argument naming the field that is out of bounds.
  void validate() const;
};

/// The names of all variables above, for a check of misspelt ones.
inline constexpr std::string_view path_variables[] = {"SPARK_COMM_PATH_TABLE"};

}  // namespace spark_comm
