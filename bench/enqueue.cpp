// SPDX-License-Identifier: AGPL-3.0-only
// Host time to enqueue an eager all-reduce: through a supervised communicator, through one that is
// not, and by the raw native call on a blocking native communicator of the same process,
// interleaved in one run. Prints one JSON object on rank 0.
//
//     spark-comm launch -n 2 -- enqueue [iterations]
#include <spark_comm/nccl/config.hpp>
#include <spark_comm/spark_comm.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;
namespace nccl = spark_comm::nccl;

struct samples {
  std::vector<double> enqueue_us;
  std::vector<double> total_us;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double microseconds(clock_type::duration span) {
  return std::chrono::duration<double, std::micro>(span).count();
}

// A raw blocking communicator over the same ranks. Its id travels over the communicator under test.
nccl::abi::comm make_raw(spark_comm::communicator& comm) {
  const auto& library = comm.loaded_runtime().library();
  const auto stream = comm.device().create_stream();
  nccl::abi::unique_id id{};
  if (comm.rank() == 0) {
    library.check(library.table().ncclGetUniqueId(&id), "ncclGetUniqueId");
  }
  const auto shared = spark_comm::cuda::device_buffer::allocate(comm.device(), sizeof id);
  copy_async(comm.device(), shared.address(), &id, sizeof id, stream);
  broadcast(comm, shared.as<std::byte>(), spark_comm::rank_id{0}, stream);
  copy_async(comm.device(), &id, shared.address(), sizeof id, stream);
  if (comm.wait(stream, 20s) == spark_comm::wait_result::timed_out) {
    std::fprintf(stderr, "the id did not arrive in 20 s\n");
    std::exit(4);  // NOLINT(concurrency-mt-unsafe): the program's only thread of its own
  }
  const spark_comm::cuda::device_scope current{comm.device()};
  nccl::abi::config config = nccl::make_config({}, nccl::blocking_mode::blocking);
  nccl::abi::comm raw = nullptr;
  library.check(
      library.table().ncclCommInitRankConfig(&raw, comm.world_size(), id, comm.rank(), &config),
      "ncclCommInitRankConfig");
  return raw;
}

template <typename Enqueue>
void measure(spark_comm::communicator& comm,
             spark_comm::cuda::stream_ref stream,
             samples& into,
             Enqueue&& enqueue) {
  const auto begin = clock_type::now();
  enqueue();
  const auto enqueued = clock_type::now();
  if (comm.wait(stream, 20s) == spark_comm::wait_result::timed_out) {
    std::fprintf(stderr, "rank %d: an all-reduce is not over after 20 s\n", comm.rank());
    std::exit(4);  // NOLINT(concurrency-mt-unsafe)
  }
  into.total_us.push_back(microseconds(clock_type::now() - begin));
  into.enqueue_us.push_back(microseconds(enqueued - begin));
}

// What the calls cost that supervision adds to a launch; microseconds each, mean of many in a row.
std::string call_costs(spark_comm::communicator& comm, nccl::abi::comm raw) {
  constexpr int repeats = 2000;
  const auto& driver = comm.loaded_runtime().driver();
  const auto& library = comm.loaded_runtime().library();
  const auto stream = comm.device().create_stream();
  const auto event = comm.device().create_event();
  std::string text;
  const auto cost = [&](const char* name, auto&& call) {
    const auto begin = clock_type::now();
    for (int i = 0; i < repeats; ++i) {
      call();
    }
    std::array<char, 64> item{};
    std::snprintf(item.data(),
                  item.size(),
                  "%s\"%s\": %.4f",
                  text.empty() ? "" : ", ",
                  name,
                  microseconds(clock_type::now() - begin) / repeats);
    text += item.data();
  };
  namespace abi = spark_comm::cuda::abi;
  const auto& call = driver.table();
  cost("clock", [] { static_cast<void>(clock_type::now()); });
  cost("cuStreamIsCapturing", [&] {
    auto status = abi::capture_status::none;
    call.cuStreamIsCapturing(stream.ref().get(), &status);
  });
  cost("cuStreamGetCtx", [&] {
    abi::context context = nullptr;
    call.cuStreamGetCtx(stream.ref().get(), &context);
  });
  cost("cuCtxGetCurrent", [&] {
    abi::context context = nullptr;
    call.cuCtxGetCurrent(&context);
  });
  cost("device_scope", [&] { const spark_comm::cuda::device_scope scope{comm.device()}; });
  cost("ncclCommGetAsyncError", [&] {
    nccl::abi::result state = 0;
    library.table().ncclCommGetAsyncError(raw, &state);
  });
  cost("cuEventRecord", [&] { call.cuEventRecord(event.get(), stream.ref().get()); });
  cost("cuEventQuery", [&] { call.cuEventQuery(event.get()); });
  return text;
}

spark_comm::communicator join(const spark_comm::runtime& runtime, spark_comm::supervision enabled) {
  spark_comm::join_options options{.name = "enqueue",
                                   .sharing = spark_comm::device_sharing::allowed,
                                   .paths = {.max_bytes = 0}};  // the same native call everywhere
  options.supervise.enabled = enabled;
  return spark_comm::communicator::join(runtime, spark_comm::world::from_environment(), options);
}

/// The three ways, which take turns, each first every third time: the later find warmer caches.
class contest {
 public:
  contest(spark_comm::communicator& supervised,
          spark_comm::communicator& bare,
          nccl::abi::comm raw,
          std::size_t largest_bytes)
      : supervised_(&supervised),
        bare_(&bare),
        raw_(raw),
        stream_(supervised.device().create_stream()),
        memory_(spark_comm::cuda::device_buffer::allocate(supervised.device(), largest_bytes)) {
    fill_async(supervised.device(), memory_.address(), 0, largest_bytes, stream_);
  }

  std::string row(std::size_t bytes, int iterations) {
    std::array<samples, 3> taken;
    for (int i = 0; i < iterations; ++i) {
      for (int turn = 0; turn < 3; ++turn) {
        const auto way = static_cast<std::size_t>((i + turn) % 3);
        run(way, bytes / sizeof(spark_comm::bfloat16), taken[way]);
      }
    }
    const double supervised = median(taken[0].enqueue_us);
    const double bare = median(taken[1].enqueue_us);
    const double raw = median(taken[2].enqueue_us);
    std::array<char, 400> text{};
    std::snprintf(text.data(),
                  text.size(),
                  "{\"bytes\": %zu, \"enqueue_us\": %.3f, \"unsupervised_enqueue_us\": %.3f, "
                  "\"raw_enqueue_us\": %.3f, \"ratio\": %.4f, \"unsupervised_ratio\": %.4f, "
                  "\"supervision_us\": %.3f, \"total_us\": %.3f, \"unsupervised_total_us\": %.3f, "
                  "\"raw_total_us\": %.3f}",
                  bytes,
                  supervised,
                  bare,
                  raw,
                  supervised / raw,
                  bare / raw,
                  supervised - bare,
                  median(taken[0].total_us),
                  median(taken[1].total_us),
                  median(taken[2].total_us));
    return text.data();
  }

 private:
  void run(std::size_t way, std::size_t count, samples& into) {
    const spark_comm::device_span<spark_comm::bfloat16> x{
        static_cast<spark_comm::bfloat16*>(memory_.address()), count};
    if (way < 2) {
      spark_comm::communicator& comm = way == 0 ? *supervised_ : *bare_;
      measure(
          comm, stream_, into, [&] { all_reduce(comm, x, spark_comm::reduce_op::sum, stream_); });
      return;
    }
    const auto& library = bare_->loaded_runtime().library();
    measure(*bare_, stream_, into, [&] {
      library.check(library.table().ncclAllReduce(x.address,
                                                  x.address,
                                                  count,
                                                  static_cast<int>(spark_comm::data_type::bfloat16),
                                                  0,
                                                  raw_,
                                                  stream_.ref().get()),
                    "ncclAllReduce");
    });
  }

  spark_comm::communicator* supervised_;
  spark_comm::communicator* bare_;
  nccl::abi::comm raw_;
  spark_comm::cuda::stream stream_;
  spark_comm::cuda::device_buffer memory_;
};

int run(int iterations) {
  const auto runtime = spark_comm::runtime::load(spark_comm::runtime_kind::automatic);
  auto comm = join(runtime, spark_comm::supervision::on);
  auto bare = join(runtime, spark_comm::supervision::off);
  const nccl::abi::comm raw = make_raw(comm);
  std::string rows;
  {
    constexpr std::array<std::size_t, 4> sizes = {8, 8192, 65536, 1048576};
    contest three{comm, bare, raw, sizes.back()};
    for (const std::size_t bytes : sizes) {
      rows += (rows.empty() ? "" : ", ") + three.row(bytes, iterations);
    }
  }
  const std::string costs = call_costs(comm, raw);
  if (comm.rank() == 0) {
    std::printf(
        "{\"benchmark\": \"enqueue\", \"ranks\": %d, \"iterations\": %d, \"runtime\": \"%s\", "
        "\"rows\": [%s], \"call_us\": {%s}}\n",
        comm.world_size(),
        iterations,
        comm.loaded_runtime().description().c_str(),
        rows.c_str(),
        costs.c_str());
  }
  const auto& library = comm.loaded_runtime().library();
  library.check(library.table().ncclCommDestroy(raw), "ncclCommDestroy");
  bare.close(20s);
  comm.close(20s);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? std::atoi(argv[1]) : 500);
  } catch (const spark_comm::error& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 4;
  }
}
