// SPDX-License-Identifier: AGPL-3.0-only
// Compares our declarations of NCCL's ABI with nccl.h, at compile time. Built only where it is
// found.
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/nccl/abi.hpp>
#include <spark_comm/nccl/api.hpp>
#include <spark_comm/nccl/library.hpp>

#include <nccl.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

namespace spark_comm::nccl {
namespace {

// The vendor's type as we spell it: enumerations are integers, structs of the same layout are ours,
// everything else (the opaque types included) is the same type.
template <typename T>
struct ours {
  using type = T;
};

template <typename T>
  requires std::is_enum_v<T>
struct ours<T> {
  static_assert(sizeof(T) == sizeof(int));
  using type = int;
};

template <>
struct ours<ncclUniqueId> {
  using type = abi::unique_id;
};

template <>
struct ours<ncclConfig_t> {
  using type = abi::config;
};

template <typename T>
struct ours<T*> {
  using type = typename ours<T>::type*;
};

template <typename T>
struct ours<const T> {
  using type = const typename ours<T>::type;
};

template <typename Result, typename... Arguments>
struct ours<Result(Arguments...)> {
  using type = typename ours<Result>::type(typename ours<Arguments>::type...);
};

template <typename T>
using ours_t = typename ours<T>::type;

#define SPARK_COMM_COMPARE(result, name, arguments) \
  static_assert(std::is_same_v<ours_t<decltype(::name)>*, decltype(api::name)>, #name);
SPARK_COMM_NCCL_REQUIRED_FUNCTIONS(SPARK_COMM_COMPARE)

// A header that is older than a call does not declare it, so these are compared one by one.
#if NCCL_VERSION_CODE >= 22703
SPARK_COMM_COMPARE(, ncclCommWindowRegister, )
SPARK_COMM_COMPARE(, ncclCommWindowDeregister, )
#endif
#if NCCL_VERSION_CODE >= 22803
SPARK_COMM_COMPARE(, ncclAlltoAll, )
#endif
#if NCCL_VERSION_CODE >= 22807
SPARK_COMM_COMPARE(, ncclCommRevoke, )
#endif
#undef SPARK_COMM_COMPARE

// The list of optional calls holds no other than the four above.
#define SPARK_COMM_COUNT(result, name, arguments, since) +1
static_assert(0 SPARK_COMM_NCCL_OPTIONAL_FUNCTIONS(SPARK_COMM_COUNT) == 4);
#undef SPARK_COMM_COUNT

static_assert(std::is_same_v<ncclComm_t, abi::comm>);
static_assert(std::is_same_v<cudaStream_t, abi::stream>);

static_assert(sizeof(ncclUniqueId) == sizeof(abi::unique_id));
static_assert(alignof(ncclUniqueId) == alignof(abi::unique_id));
static_assert(offsetof(ncclUniqueId, internal) == offsetof(abi::unique_id, internal));
static_assert(NCCL_UNIQUE_ID_BYTES == sizeof(abi::unique_id));

// The header's config is a prefix of ours: same fields, same places, up to its own size.
#define SPARK_COMM_FIELD(theirs, mine)                                                       \
  static_assert(offsetof(ncclConfig_t, theirs) == offsetof(abi::config, mine), #theirs);     \
  static_assert(std::is_same_v<decltype(ncclConfig_t::theirs), decltype(abi::config::mine)>, \
                #theirs);
static_assert(sizeof(ncclConfig_t) <= sizeof(abi::config));
static_assert(alignof(ncclConfig_t) == alignof(abi::config));
SPARK_COMM_FIELD(size, size)
SPARK_COMM_FIELD(magic, magic)
SPARK_COMM_FIELD(version, version)
SPARK_COMM_FIELD(blocking, blocking)
SPARK_COMM_FIELD(cgaClusterSize, cga_cluster_size)
SPARK_COMM_FIELD(minCTAs, min_ctas)
SPARK_COMM_FIELD(maxCTAs, max_ctas)
SPARK_COMM_FIELD(netName, net_name)
SPARK_COMM_FIELD(splitShare, split_share)
#if NCCL_VERSION_CODE >= 22600
SPARK_COMM_FIELD(trafficClass, traffic_class)
#endif
#if NCCL_VERSION_CODE >= 22700
SPARK_COMM_FIELD(commName, comm_name)
SPARK_COMM_FIELD(collnetEnable, collnet_enable)
SPARK_COMM_FIELD(CTAPolicy, cta_policy)
SPARK_COMM_FIELD(shrinkShare, shrink_share)
SPARK_COMM_FIELD(nvlsCTAs, nvls_ctas)
#endif
#if NCCL_VERSION_CODE >= 22800
SPARK_COMM_FIELD(nChannelsPerNetPeer, n_channels_per_net_peer)
SPARK_COMM_FIELD(nvlinkCentricSched, nvlink_centric_sched)
#endif
#if NCCL_VERSION_CODE >= 22900
SPARK_COMM_FIELD(graphUsageMode, graph_usage_mode)
SPARK_COMM_FIELD(numRmaCtx, num_rma_ctx)
#endif
#if NCCL_VERSION_CODE >= 23000
SPARK_COMM_FIELD(maxP2pPeers, max_p2p_peers)
#endif
#if NCCL_VERSION_CODE >= 23007
SPARK_COMM_FIELD(graphStreamOrdering, graph_stream_ordering)
#endif
#undef SPARK_COMM_FIELD

static_assert(NCCL_CONFIG_UNDEF_INT == abi::undefined_int);
static_assert(NCCL_CONFIG_UNDEF_PTR == nullptr);

static_assert(ncclSuccess == abi::results::success);
static_assert(ncclUnhandledCudaError == abi::results::unhandled_cuda_error);
static_assert(ncclSystemError == abi::results::system_error);
static_assert(ncclInternalError == abi::results::internal_error);
static_assert(ncclInvalidArgument == abi::results::invalid_argument);
static_assert(ncclInvalidUsage == abi::results::invalid_usage);
static_assert(ncclRemoteError == abi::results::remote_error);
static_assert(ncclInProgress == abi::results::in_progress);
#if NCCL_VERSION_CODE >= 23003
static_assert(ncclTimeout == abi::results::timeout);
#endif

constexpr bool same(ncclDataType_t theirs, data_type mine) {
  return static_cast<int>(theirs) == static_cast<int>(mine);
}

static_assert(same(ncclInt8, data_type::int8));
static_assert(same(ncclUint8, data_type::uint8));
static_assert(same(ncclInt32, data_type::int32));
static_assert(same(ncclUint32, data_type::uint32));
static_assert(same(ncclInt64, data_type::int64));
static_assert(same(ncclUint64, data_type::uint64));
static_assert(same(ncclFloat16, data_type::float16));
static_assert(same(ncclFloat32, data_type::float32));
static_assert(same(ncclFloat64, data_type::float64));
static_assert(same(ncclBfloat16, data_type::bfloat16));
#if NCCL_VERSION_CODE >= 22403
static_assert(same(ncclFloat8e4m3, data_type::float8_e4m3));
static_assert(same(ncclFloat8e5m2, data_type::float8_e5m2));
#endif

constexpr bool same(ncclRedOp_t theirs, reduce_op mine) {
  return static_cast<int>(theirs) == static_cast<int>(mine);
}

static_assert(same(ncclSum, reduce_op::sum));
static_assert(same(ncclProd, reduce_op::prod));
static_assert(same(ncclMax, reduce_op::max));
static_assert(same(ncclMin, reduce_op::min));
static_assert(same(ncclAvg, reduce_op::avg));

static_assert(NCCL_SPLIT_NOCOLOR == abi::split_no_color);
#if NCCL_VERSION_CODE >= 22703
static_assert(std::is_same_v<ncclWindow_t, abi::window>);
static_assert(NCCL_WIN_DEFAULT == abi::window_default);
static_assert(NCCL_WIN_COLL_SYMMETRIC == abi::window_collective_symmetric);
#endif
#if NCCL_VERSION_CODE >= 22803
static_assert(NCCL_WIN_REQUIRED_ALIGNMENT == abi::window_alignment_bytes);
#endif

TEST(nccl_abi, magic_and_undefined_values_are_those_of_the_headers_initializer) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const abi::config mine;
  EXPECT_EQ(theirs.size, sizeof(ncclConfig_t));
  EXPECT_EQ(mine.size, sizeof(abi::config));
  EXPECT_EQ(theirs.magic, mine.magic);
  EXPECT_EQ(theirs.version, static_cast<unsigned int>(NCCL_VERSION_CODE));
  EXPECT_EQ(theirs.blocking, mine.blocking);
  EXPECT_EQ(theirs.cgaClusterSize, mine.cga_cluster_size);
  EXPECT_EQ(theirs.minCTAs, mine.min_ctas);
  EXPECT_EQ(theirs.maxCTAs, mine.max_ctas);
  EXPECT_EQ(theirs.netName, mine.net_name);
  EXPECT_EQ(theirs.splitShare, mine.split_share);
#if NCCL_VERSION_CODE >= 22700
  EXPECT_EQ(theirs.trafficClass, mine.traffic_class);
  EXPECT_EQ(theirs.commName, mine.comm_name);
  EXPECT_EQ(theirs.collnetEnable, mine.collnet_enable);
  EXPECT_EQ(theirs.CTAPolicy, mine.cta_policy);
  EXPECT_EQ(theirs.shrinkShare, mine.shrink_share);
  EXPECT_EQ(theirs.nvlsCTAs, mine.nvls_ctas);
#endif
}

TEST(nccl_abi, header_is_not_below_the_floor) {
  RecordProperty("nccl_h", NCCL_VERSION_CODE);
  EXPECT_GE(NCCL_VERSION_CODE, floor_version);
}

}  // namespace
}  // namespace spark_comm::nccl
