// SPDX-License-Identifier: AGPL-3.0-only
// The smallest program that shows that a package's headers and library fit together. It needs no
// runtime: the error that it expects comes before one is looked for.
#include <spark_comm/spark_comm.hpp>

#include <cstdio>

int main() {
  try {
    (void)spark_comm::runtime::load(static_cast<spark_comm::runtime_kind>(99));
  } catch (const spark_comm::error& failure) {
    std::puts(failure.what());
    return failure.kind() == spark_comm::errc::invalid_argument ? 0 : 1;
  }
  return 1;
}
