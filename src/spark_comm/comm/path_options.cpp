// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/path_options.hpp>
#include <spark_comm/core/error.hpp>

#include <cstddef>
#include <cstdlib>
#include <fmt/format.h>

namespace spark_comm {

path_options path_options::from_environment() {
  path_options options;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, at the join
  if (const char* const file = std::getenv("SPARK_COMM_PATH_TABLE"); file != nullptr) {
    options.table_file = file;
  }
  return options;
}

void path_options::validate() const {
  constexpr std::size_t largest = std::size_t{256} << 20U;
  constexpr int most_streams = 64;
  if (max_bytes > largest) {
    throw error{errc::invalid_argument,
                fmt::format("paths.max_bytes is {}, and at most {} are accepted: larger messages "
                            "go best by NCCL",
                            max_bytes,
                            largest)};
  }
  if (max_streams < 1 || max_streams > most_streams) {
    throw error{
        errc::invalid_argument,
        fmt::format("paths.max_streams is {}: 1 to {} are accepted", max_streams, most_streams)};
  }
}

}  // namespace spark_comm
