// SPDX-License-Identifier: AGPL-3.0-only
// libFuzzer target of the rendezvous decoders. Needs clang:
//   clang++-19 -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Isrc -Itests \
//     tests/fuzz/wire_fuzz.cpp src/spark_comm/rendezvous/detail/wire.cpp -o build/wire_fuzz
//   build/wire_fuzz -max_total_time=60
#include "fuzz/wire_property.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (!spark_comm::rendezvous::detail::decoders_hold(std::as_bytes(std::span{data, size}))) {
    __builtin_trap();
  }
  return 0;
}
