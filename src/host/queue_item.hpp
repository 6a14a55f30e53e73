// SPDX-License-Identifier: AGPL-3.0-only
// What stands in a stream's queue.
#pragma once

#include "stream.hpp"

#include <cstdint>

namespace spark_comm::host {

/// Who may run an item.
enum class item_kind : std::uint8_t {
  brief,     ///< Never holds its thread: anybody who passes by may run it, a query too.
  blocking,  ///< Foreign code that may wait for its caller: the worker and synchronizers only.
};

struct queue_item {
  task_factory make;
  item_kind kind = item_kind::brief;
};

}  // namespace spark_comm::host
