// SPDX-License-Identifier: AGPL-3.0-only
// The exported NCCL calls of the host runtime, and one rank's surroundings for its tests.
#pragma once

#include "driver_calls.hpp"
#include "support/ranks.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/nccl/api.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace spark_comm::nccl {

extern "C" {

// NOLINTBEGIN(cppcoreguidelines-macro-usage): one list for table and tests
#define SPARK_COMM_DECLARE_CALL(type, name, arguments) type name arguments;
#define SPARK_COMM_DECLARE_OPTIONAL_CALL(type, name, arguments, since) type name arguments;
// NOLINTEND(cppcoreguidelines-macro-usage)
SPARK_COMM_NCCL_REQUIRED_FUNCTIONS(SPARK_COMM_DECLARE_CALL)
SPARK_COMM_NCCL_OPTIONAL_FUNCTIONS(SPARK_COMM_DECLARE_OPTIONAL_CALL)
#undef SPARK_COMM_DECLARE_CALL
#undef SPARK_COMM_DECLARE_OPTIONAL_CALL

abi::result ncclBcast(void* buffer,
                      std::size_t count,
                      abi::data_type dtype,
                      int root,
                      abi::comm comm,
                      abi::stream stream);
abi::result ncclGather(const void* in,
                       void* out,
                       std::size_t count,
                       abi::data_type dtype,
                       int root,
                       abi::comm comm,
                       abi::stream stream);
abi::result ncclScatter(const void* in,
                        void* out,
                        std::size_t count,
                        abi::data_type dtype,
                        int root,
                        abi::comm comm,
                        abi::stream stream);
abi::result ncclCommInitAll(abi::comm* comms, int count, const int* devices);
abi::result ncclCommInitRankScalable(
    abi::comm* comm, int ranks, int rank, int id_count, abi::unique_id* ids, abi::config* config);
abi::result ncclCommShrink(abi::comm comm,
                           int* excluded,
                           int excluded_count,
                           abi::comm* child,
                           abi::config* config,
                           int flags);
abi::result ncclRedOpCreatePreMulSum(
    int* op, void* scalar, abi::data_type dtype, int residence, abi::comm comm);
abi::result ncclRedOpDestroy(int op, abi::comm comm);

}  // extern "C"

}  // namespace spark_comm::nccl

namespace spark_comm::host_test {

using namespace spark_comm::nccl;  // NOLINT(google-build-using-namespace): the calls under test
namespace nccl_results = spark_comm::nccl::abi::results;
using test_support::expect_all_succeeded;
using test_support::run_rank_processes;
using test_support::run_rank_threads;
using nccl_comm = spark_comm::nccl::abi::comm;
using nccl_id = spark_comm::nccl::abi::unique_id;
using nccl_config = spark_comm::nccl::abi::config;

inline nccl_id make_id() {
  nccl_id id{};
  EXPECT_EQ(ncclGetUniqueId(&id), nccl_results::success);
  return id;
}

/// Runs a body in a process of its own: a process that has used the runtime cannot fork ranks any
/// more, and a thread's leaked group depth ends with it.
inline void run_alone(const std::function<void()>& body) {
  expect_all_succeeded(run_rank_processes(1, [&](int) { body(); }));
}

/// A device context and a stream, as a rank has them before it joins.
class rank_device {
 public:
  rank_device() {
    EXPECT_EQ(cuInit(0), 0);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), 0);
    EXPECT_EQ(cuCtxSetCurrent(context_), 0);
    EXPECT_EQ(cuStreamCreate(&stream_, cuda::abi::flags::stream_non_blocking), 0);
  }

  rank_device(const rank_device&) = delete;
  rank_device& operator=(const rank_device&) = delete;
  rank_device(rank_device&&) = delete;
  rank_device& operator=(rank_device&&) = delete;

  ~rank_device() {
    EXPECT_EQ(cuStreamDestroy_v2(stream_), 0);
    EXPECT_EQ(cuCtxSetCurrent(nullptr), 0);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);
  }

  [[nodiscard]] cuda::abi::stream stream() const noexcept { return stream_; }

  void synchronize() const { EXPECT_EQ(cuStreamSynchronize(stream_), 0); }

 private:
  cuda::abi::context context_ = nullptr;
  cuda::abi::stream stream_ = nullptr;
};

/// A rank of a blocking world, destroyed at the end.
class joined_rank : public rank_device {
 public:
  joined_rank(int ranks, const nccl_id& id, int rank) : ranks_(ranks), rank_(rank) {
    EXPECT_EQ(ncclCommInitRank(&comm_, ranks, id, rank), 0) << ncclGetLastError(nullptr);
  }

  ~joined_rank() {
    if (comm_ != nullptr) {
      EXPECT_EQ(ncclCommDestroy(comm_), 0) << ncclGetLastError(nullptr);
    }
  }

  [[nodiscard]] nccl_comm comm() const noexcept { return comm_; }

  [[nodiscard]] int rank() const noexcept { return rank_; }

  [[nodiscard]] int ranks() const noexcept { return ranks_; }

  /// For tests that end the communicator themselves.
  nccl_comm release() noexcept { return std::exchange(comm_, nullptr); }

  template <typename T>
  int all_reduce(const std::vector<T>& in, std::vector<T>& out, reduce_op op = reduce_op::sum) {
    return ncclAllReduce(in.data(),
                         out.data(),
                         in.size(),
                         static_cast<int>(data_type_of<T>),
                         static_cast<int>(op),
                         comm_,
                         stream());
  }

 private:
  nccl_comm comm_ = nullptr;
  int ranks_;
  int rank_;
};

/// Polls a communicator until it is not in progress; its state then.
inline int settle(nccl_comm comm, std::chrono::milliseconds limit = std::chrono::seconds{10}) {
  const auto end = std::chrono::steady_clock::now() + limit;
  int state = nccl_results::in_progress;
  while (state == nccl_results::in_progress && std::chrono::steady_clock::now() < end) {
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), 0);
    std::this_thread::yield();
  }
  return state;
}

}  // namespace spark_comm::host_test
