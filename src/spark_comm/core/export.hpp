// SPDX-License-Identifier: AGPL-3.0-only
// Marks what the shared library exports; everything else is hidden (-fvisibility=hidden).
#pragma once

#define SPARK_COMM_API __attribute__((visibility("default")))
