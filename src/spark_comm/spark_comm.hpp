// SPDX-License-Identifier: AGPL-3.0-only
// Everything that a program needs.
#pragma once

#include <spark_comm/collectives/all_gather.hpp>
#include <spark_comm/collectives/all_reduce.hpp>
#include <spark_comm/collectives/all_reduce_overlapped.hpp>
#include <spark_comm/collectives/all_reduce_rms_norm.hpp>
#include <spark_comm/collectives/all_to_all.hpp>
#include <spark_comm/collectives/barrier.hpp>
#include <spark_comm/collectives/broadcast.hpp>
#include <spark_comm/collectives/recv.hpp>
#include <spark_comm/collectives/reduce.hpp>
#include <spark_comm/collectives/reduce_scatter.hpp>
#include <spark_comm/collectives/send.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/group.hpp>
#include <spark_comm/comm/memory.hpp>
#include <spark_comm/comm/registration.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/paths/path_of.hpp>
#include <spark_comm/paths/path_table.hpp>
