// SPDX-License-Identifier: AGPL-3.0-only
// The command-line tool.
#include "run.hpp"

#include <string>
#include <vector>

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return static_cast<int>(spark_comm::app::run(arguments));
}
