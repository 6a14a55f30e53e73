// SPDX-License-Identifier: AGPL-3.0-only
// What stands behind the opaque handles of the C interface.
#pragma once

#include <spark_comm/c/collectives.h>
#include <spark_comm/c/communicator.h>
#include <spark_comm/c/device.h>
#include <spark_comm/c/error.h>
#include <spark_comm/c/group.h>
#include <spark_comm/c/registration.h>
#include <spark_comm/c/runtime.h>
#include <spark_comm/collectives/all_reduce_overlapped.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/group.hpp>
#include <spark_comm/comm/registration.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>

#include <cstdint>
#include <utility>
#include <vector>

struct spark_comm_error {
  explicit spark_comm_error(spark_comm::error cause)
      : value(std::move(cause)),
        peers(value.context().peers.begin(), value.context().peers.end()) {}

  spark_comm::error value;
  std::vector<std::int32_t> peers;
};

struct spark_comm_runtime {
  spark_comm::runtime value;
};

struct spark_comm_device {
  spark_comm::cuda::device value;
};

struct spark_comm_stream {
  spark_comm::cuda::stream value;
};

struct spark_comm_event {
  spark_comm::cuda::event value;
};

struct spark_comm_device_buffer {
  spark_comm::cuda::device_buffer value;
};

struct spark_comm_pinned_buffer {
  spark_comm::cuda::pinned_buffer value;
};

struct spark_comm_communicator {
  explicit spark_comm_communicator(spark_comm::communicator joined)
      : value(std::move(joined)), device{value.device()} {}

  spark_comm::communicator value;
  spark_comm_device device;  // what spark_comm_communicator_device lends
};

struct spark_comm_group {
  explicit spark_comm_group(spark_comm::communicator& comm) : value(comm) {}

  spark_comm::group_scope value;
};

struct spark_comm_registration {
  spark_comm::registration value;
};

struct spark_comm_window {
  spark_comm::window value;
};

struct spark_comm_overlapped {
  spark_comm::overlapped_result value;
};
