// SPDX-License-Identifier: AGPL-3.0-only
// What a fuzz target consists of. It runs under the driver in mutation.cpp, as a test of every
// build, and under libFuzzer, which needs clang (see docs/contributing.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Inputs that are right, from which the driver makes wrong ones.
[[nodiscard]] std::vector<std::string> fuzz_seeds();

/// Ends the process by a trap when a property does not hold.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace spark_comm::fuzz {

inline void require(bool holds) {
  if (!holds) {
    __builtin_trap();
  }
}

}  // namespace spark_comm::fuzz
