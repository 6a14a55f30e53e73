// SPDX-License-Identifier: AGPL-3.0-only
// The smallest program that shows that a package's headers, library and host runtime fit together.
#include <spark_comm/spark_comm.hpp>

#include <cstdio>

int main() {
  try {
    const auto runtime = spark_comm::runtime::load(spark_comm::runtime_kind::host);
    std::puts(runtime.description().c_str());
    return 0;
  } catch (const spark_comm::error& failure) {
    std::puts(failure.what());
    return 1;
  }
}
