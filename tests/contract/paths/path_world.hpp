// SPDX-License-Identifier: AGPL-3.0-only
// Rank processes that share a table of paths, and device memory that they fill and read.
#pragma once

#include "support/ranks.hpp"
#include "support/typed_buffer.hpp"
#include "support/world.hpp"

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/device_span.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::test_support {

/// A table by which everything that can goes by `path`.
[[nodiscard]] inline std::string table_of(path_kind path) {
  const std::string name{name_of(path)};
  return "spark-comm-paths 1\nall_reduce * * * " + name + "\nall_reduce_rms_norm * * * " + name +
         "\n";
}

[[nodiscard]] inline bool is_on_gpu() {
  const char* const kind = std::getenv("SPARK_COMM_TEST_RUNTIME");  // NOLINT(concurrency-mt-unsafe)
  return kind != nullptr && std::string_view{kind} == "nvidia";
}

/// The runtime under test. Called in the rank's process.
[[nodiscard]] inline runtime path_runtime(int rank, diagnostics log = {}) {
  if (!is_on_gpu()) {
    return host_runtime(std::move(log));
  }
  // Ranks that share a GPU have to be hosts of their own for NCCL.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the process has one thread yet
  ::setenv("NCCL_HOSTID", ("rank-" + std::to_string(rank)).c_str(), 1);
  runtime_options options = runtime_options::from_environment();
  options.log = std::move(log);
  return runtime::load(runtime_kind::nvidia, options);
}

/// Joins with these paths.
[[nodiscard]] inline communicator join_paths(const meeting_place& place,
                                             int rank,
                                             int size,
                                             const path_options& paths,
                                             const option_changes& change = {},
                                             diagnostics log = {}) {
  return join_at(
      place, path_runtime(rank, std::move(log)), rank, size, [&](int r, join_options& o) {
        o.paths = paths;
        o.device = is_on_gpu() ? 0 : r;
        o.sharing = device_sharing::allowed;
        if (change) {
          change(r, o);
        }
      });
}

/// Forks ranks that join with these paths and run `body`; a rank that is still whole closes.
[[nodiscard]] inline rank_outcomes run_paths(int size,
                                             const path_options& paths,
                                             const std::function<void(communicator&)>& body,
                                             const option_changes& change = {}) {
  const meeting_place place;
  return run_rank_processes(
      size,
      [&](int rank) {
        communicator comm = join_paths(place, rank, size, paths, change);
        body(comm);
        if (comm.state() == communicator_state::ready) {
          comm.close(std::chrono::seconds{10});
        }
      },
      std::chrono::seconds{60});
}

/// Device memory with elements behind a vector boundary by `offset`.
template <typename T>
class device_elements {
 public:
  device_elements(const communicator& comm, std::size_t count, std::size_t offset = 0)
      : device_(comm.device()),
        memory_(cuda::device_buffer::allocate(comm.device(), (count + offset) * sizeof(T))),
        count_(count),
        offset_(offset) {}

  [[nodiscard]] T* data() const { return static_cast<T*>(memory_.address()) + offset_; }

  [[nodiscard]] device_span<T> span() const { return {data(), count_}; }

  /// Order: done on return.
  void write(const std::vector<T>& values, const cuda::stream& s) const {
    cuda::copy_async(device_, data(), values.data(), count_ * sizeof(T), s);
    EXPECT_EQ(device_.wait(s, std::chrono::seconds{10}), wait_result::done);
  }

  /// What is there once the stream is drained.
  [[nodiscard]] std::vector<T> read(const cuda::stream& s) const {
    std::vector<T> values(count_);
    cuda::copy_async(device_, values.data(), data(), count_ * sizeof(T), s);
    EXPECT_EQ(device_.wait(s, std::chrono::seconds{10}), wait_result::done);
    return values;
  }

 private:
  cuda::device device_;
  cuda::device_buffer memory_;
  std::size_t count_;
  std::size_t offset_;
};

/// Element `i` of rank `rank` in round `round`: small, so that sums are exact in no order but
/// rounded in 16 bits.
template <typename T>
[[nodiscard]] T element(int rank, std::size_t i, int round = 0) {
  const auto mixed = (i * 2654435761U + static_cast<std::size_t>(rank) * 40503U +
                      static_cast<std::size_t>(round) * 9176U) %
                     2039U;
  return test::from_float<T>((static_cast<float>(mixed) - 1019.0F) / 64.0F);
}

template <typename T>
[[nodiscard]] std::vector<T> message(int rank, std::size_t count, int round = 0) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = element<T>(rank, i, round);
  }
  return values;
}

/// The sum in rank order in fp32, rounded once.
template <typename T>
[[nodiscard]] std::vector<T> sum_of_ranks(int size, std::size_t count, int round = 0) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    float sum = test::to_float(element<T>(0, i, round));
    for (int rank = 1; rank < size; ++rank) {
      sum += test::to_float(element<T>(rank, i, round));
    }
    values[i] = test::from_float<T>(sum);
  }
  return values;
}

/// Whether NCCL itself sums here, which on a GPU does it in an order of its own and rounds between.
[[nodiscard]] inline bool has_order_of_its_own(int size, path_kind path) {
  return is_on_gpu() && size > 2 && path == path_kind::nccl;
}

template <typename T>
[[nodiscard]] bool are_near(const std::vector<T>& a, const std::vector<T>& b, float tolerance) {
  return std::ranges::equal(
      a, b, [&](T x, T y) { return std::abs(test::to_float(x) - test::to_float(y)) <= tolerance; });
}

template <typename T>
[[nodiscard]] bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace spark_comm::test_support
