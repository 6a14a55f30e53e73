// SPDX-License-Identifier: AGPL-3.0-only
#include "exit_code.hpp"

#include <spark_comm/core/error.hpp>

namespace spark_comm::app {

exit_code exit_code_for(errc code) noexcept {
  switch (code) {
    case errc::invalid_argument: return exit_code::usage;
    case errc::not_supported:    return exit_code::not_available;
    case errc::invalid_usage:
    case errc::mismatch:
    case errc::timed_out:
    case errc::peer_lost:
    case errc::aborted:
    case errc::out_of_memory:
    case errc::device_failed:
    case errc::system_failed:
    case errc::internal:         return exit_code::failed;
  }
  return exit_code::failed;
}

}  // namespace spark_comm::app
