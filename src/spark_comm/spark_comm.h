// SPDX-License-Identifier: AGPL-3.0-only
// The C interface: everything that a program in C, or in a language that calls C, needs. No
// exception leaves it, no C++ type is in it. Handles are opaque and destroyed by whoever received
// them; a pointer to a const handle is borrowed. One thread at a time uses a handle unless its
// function says otherwise.
#pragma once

#include <spark_comm/c/collectives.h>
#include <spark_comm/c/communicator.h>
#include <spark_comm/c/device.h>
#include <spark_comm/c/error.h>
#include <spark_comm/c/group.h>
#include <spark_comm/c/paths.h>
#include <spark_comm/c/registration.h>
#include <spark_comm/c/runtime.h>
#include <spark_comm/c/types.h>
