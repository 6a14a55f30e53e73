// SPDX-License-Identifier: AGPL-3.0-only
// What a process holds, to see that nothing is left behind: descriptors, threads, mappings, CPU
// time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace spark_comm::test_support {

[[nodiscard]] inline std::size_t entries_of(const std::string& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator{directory},
                                                std::filesystem::directory_iterator{}));
}

/// Open descriptors of this process; the one that reads the directory is counted each time.
[[nodiscard]] inline std::size_t open_descriptors() {
  return entries_of("/proc/self/fd");
}

[[nodiscard]] inline std::size_t live_threads() {
  return entries_of("/proc/self/task");
}

[[nodiscard]] inline std::size_t memory_mappings() {
  std::ifstream maps{"/proc/self/maps"};
  return static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>{maps}, std::istreambuf_iterator<char>{}, '\n'));
}

/// Time that all threads of this process have computed.
[[nodiscard]] inline std::chrono::nanoseconds cpu_time() {
  timespec used{};
  static_cast<void>(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used));
  return std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec};
}

}  // namespace spark_comm::test_support
