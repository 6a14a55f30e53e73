// SPDX-License-Identifier: AGPL-3.0-only
// The numbers that all of the C interface shares, held to those of the library.
#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/c/types.h>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <cstddef>
#include <cstdint>

namespace {

using spark_comm::data_type;
using spark_comm::reduce_op;

static_assert(SPARK_COMM_VERSION == SPARK_COMM_PROJECT_VERSION, "c/types.h has another version");
static_assert(SPARK_COMM_INT8 == static_cast<int>(data_type::int8));
static_assert(SPARK_COMM_UINT8 == static_cast<int>(data_type::uint8));
static_assert(SPARK_COMM_INT32 == static_cast<int>(data_type::int32));
static_assert(SPARK_COMM_UINT32 == static_cast<int>(data_type::uint32));
static_assert(SPARK_COMM_INT64 == static_cast<int>(data_type::int64));
static_assert(SPARK_COMM_UINT64 == static_cast<int>(data_type::uint64));
static_assert(SPARK_COMM_FLOAT16 == static_cast<int>(data_type::float16));
static_assert(SPARK_COMM_FLOAT32 == static_cast<int>(data_type::float32));
static_assert(SPARK_COMM_FLOAT64 == static_cast<int>(data_type::float64));
static_assert(SPARK_COMM_BFLOAT16 == static_cast<int>(data_type::bfloat16));
static_assert(SPARK_COMM_FLOAT8_E4M3 == static_cast<int>(data_type::float8_e4m3));
static_assert(SPARK_COMM_FLOAT8_E5M2 == static_cast<int>(data_type::float8_e5m2));
static_assert(SPARK_COMM_BYTES == static_cast<int>(data_type::bytes));
static_assert(SPARK_COMM_SUM == static_cast<int>(reduce_op::sum));
static_assert(SPARK_COMM_PROD == static_cast<int>(reduce_op::prod));
static_assert(SPARK_COMM_MAX == static_cast<int>(reduce_op::max));
static_assert(SPARK_COMM_MIN == static_cast<int>(reduce_op::min));
static_assert(SPARK_COMM_AVG == static_cast<int>(reduce_op::avg));

}  // namespace

std::int32_t spark_comm_version(void) {  // NOLINT(modernize-redundant-void-arg): as in the C header
  return SPARK_COMM_VERSION;
}

std::size_t spark_comm_data_type_size(spark_comm_data_type dtype) {
  return size_of(spark_comm::c::any_of<data_type>(dtype));
}

const char* spark_comm_data_type_name(spark_comm_data_type dtype) {
  return name_of(spark_comm::c::any_of<data_type>(dtype)).data();
}

const char* spark_comm_reduce_op_name(spark_comm_reduce_op op) {
  return name_of(spark_comm::c::any_of<reduce_op>(op)).data();
}
