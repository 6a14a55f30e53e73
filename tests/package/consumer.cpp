// SPDX-License-Identifier: AGPL-3.0-only
// The smallest program that shows that headers, library and host runtime of a package fit together.
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>

#include <cstdio>

int main() {
  try {
    throw spark_comm::error{spark_comm::errc::timed_out, "thrown here, caught here"};
  } catch (const spark_comm::error& failure) {
    std::puts(failure.what());
    return failure.kind() == spark_comm::errc::timed_out ? 0 : 1;
  }
}
