// SPDX-License-Identifier: AGPL-3.0-only
// Time of all_reduce_rms_norm on a path against NCCL's all-reduce and the norm kernel one after the
// other, interleaved in one run: each alone until its stream is drained, and ten in a graph. Prints
// one JSON object a shape on rank 0.
//
//     spark-comm launch -n 2 -- fused_norm [path|auto] [iterations] [hidden] [tokens ...]
#include <spark_comm/cuda/graph.hpp>
#include <spark_comm/kernels/module.hpp>
#include <spark_comm/kernels/rms_norm.hpp>
#include <spark_comm/spark_comm.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;
namespace sc = spark_comm;

constexpr int operations_in_graph = 10;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

class measurement {
 public:
  measurement(sc::communicator& comm, std::size_t rows, std::size_t hidden)
      : comm_(comm),
        kernels_(sc::kernels::kernel_module::load(
            comm.device(),
            comm.loaded_runtime().kind() == sc::runtime_kind::host ? sc::kernels::image_kind::host
                                                                   : sc::kernels::image_kind::gpu)),
        rows_(rows),
        hidden_(hidden),
        s_(comm.device().create_stream()),
        partial_(allocate(rows)),
        residual_(allocate(rows)),
        weight_(allocate(1)),
        out_(allocate(rows)) {
    for (const auto* memory : {&partial_, &residual_, &weight_, &out_}) {
      fill_async(comm.device(), memory->address(), 0, memory->size_bytes(), s_);
    }
  }

  void fused() {
    all_reduce_rms_norm(comm_,
                        {.partial = partial_.address(),
                         .residual = residual_.address(),
                         .weight = weight_.address(),
                         .out = out_.address(),
                         .rows = rows_,
                         .hidden = hidden_},
                        s_);
  }

  void unfused() {
    all_reduce(comm_, partial_.as<sc::bfloat16>(), sc::reduce_op::sum, s_);
    const std::array<const void*, 1> partials = {partial_.address()};
    sc::kernels::rms_norm(kernels_,
                          {.partials = partials,
                           .residual = residual_.address(),
                           .weight = weight_.address(),
                           .residual_out = residual_.address(),
                           .out = out_.address(),
                           .rows = rows_,
                           .hidden = hidden_},
                          s_);
  }

  /// Microseconds until the stream is drained.
  double time(const std::function<void()>& work) {
    const auto begin = clock_type::now();
    work();
    if (comm_.wait(s_, 20s) == sc::wait_result::timed_out) {
      throw sc::error{sc::errc::timed_out, "the work is not over after 20 s"};
    }
    return std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
  }

  sc::cuda::graph capture(const std::function<void()>& work) {
    sc::cuda::capture_scope scope{comm_.device(), s_};
    for (int i = 0; i < operations_in_graph; ++i) {
      work();
    }
    return scope.end();
  }

  /// Medians of both ways, interleaved.
  std::array<double, 2> compare(const std::function<void()>& a,
                                const std::function<void()>& b,
                                int iterations) {
    constexpr int warm_up = 20;
    std::array<std::vector<double>, 2> times;
    for (int i = 0; i < warm_up + iterations; ++i) {
      const std::array<double, 2> taken = {time(a), time(b)};
      for (std::size_t way = 0; way < 2 && i >= warm_up; ++way) {
        times[way].push_back(taken[way]);
      }
    }
    return {median(times[0]), median(times[1])};
  }

  [[nodiscard]] const sc::cuda::stream& stream() const { return s_; }

 private:
  [[nodiscard]] sc::cuda::device_buffer allocate(std::size_t rows) const {
    return sc::cuda::device_buffer::allocate(comm_.device(), rows * hidden_ * sizeof(sc::bfloat16));
  }

  sc::communicator& comm_;
  sc::kernels::kernel_module kernels_;
  std::size_t rows_;
  std::size_t hidden_;
  sc::cuda::stream s_;
  sc::cuda::device_buffer partial_;
  sc::cuda::device_buffer residual_;
  sc::cuda::device_buffer weight_;
  sc::cuda::device_buffer out_;
};

void measure(sc::communicator& comm, std::size_t rows, std::size_t hidden, int iterations) {
  measurement each{comm, rows, hidden};
  const auto fused = [&] { each.fused(); };
  const auto unfused = [&] { each.unfused(); };
  const std::array<double, 2> eager = each.compare(fused, unfused, iterations);
  const sc::cuda::graph fused_work = each.capture(fused);
  const sc::cuda::graph unfused_work = each.capture(unfused);
  const sc::cuda::graph_exec fused_graph = fused_work.instantiate();
  const sc::cuda::graph_exec unfused_graph = unfused_work.instantiate();
  std::array<double, 2> graph = each.compare([&] { fused_graph.launch(each.stream()); },
                                             [&] { unfused_graph.launch(each.stream()); },
                                             iterations);
  for (double& time : graph) {
    time /= operations_in_graph;
  }
  const std::size_t bytes = rows * hidden * sizeof(sc::bfloat16);
  const sc::path_kind path = path_of(comm,
                                     {.operation = sc::operation_kind::all_reduce_rms_norm,
                                      .bytes = bytes,
                                      .staging_bytes = bytes});
  if (comm.rank() == 0) {
    std::printf(
        "{\"benchmark\": \"fused_norm\", \"path\": \"%s\", \"ranks\": %d, \"tokens\": %zu, "
        "\"hidden\": %zu, \"bytes\": %zu, \"eager_us\": %.2f, \"eager_unfused_us\": %.2f, "
        "\"eager_ratio\": %.3f, \"graph_us\": %.2f, \"graph_unfused_us\": %.2f, "
        "\"graph_ratio\": %.3f}\n",
        std::string{name_of(path)}.c_str(),
        comm.world_size(),
        rows,
        hidden,
        bytes,
        eager[0],
        eager[1],
        eager[1] / eager[0],
        graph[0],
        graph[1],
        graph[1] / graph[0]);
  }
}

sc::path_options paths_by(const std::string& path) {
  sc::path_options options;
  if (path != "auto") {
    options.table = "spark-comm-paths 1\nall_reduce_rms_norm * * * " + path + "\n";
  } else {
    // The other side is NCCL's all-reduce, so only the fused rules are taken over.
    options.table = "spark-comm-paths 1\n";
    const sc::path_table shipped = sc::path_table::defaults(sc::runtime_kind::nvidia);
    for (const sc::path_rule& rule : shipped.rules()) {
      if (rule.operation == sc::operation_kind::all_reduce_rms_norm) {
        const std::string text = sc::path_table{{rule}}.text();
        options.table += text.substr(text.find('\n') + 1);
      }
    }
  }
  return options;
}

void run(const std::vector<std::string>& words) {
  const auto word = [&](std::size_t at, const char* otherwise) {
    return at < words.size() ? words[at] : std::string{otherwise};
  };
  const int iterations = std::stoi(word(1, "200"));
  const auto hidden = static_cast<std::size_t>(std::stoul(word(2, "4096")));
  std::vector<std::string> tokens(words.begin() + std::min<std::ptrdiff_t>(std::ssize(words), 3),
                                  words.end());
  if (tokens.empty()) {
    tokens = {"1", "2", "4", "8", "16", "32"};
  }
  auto comm = sc::communicator::join(sc::runtime::load(sc::runtime_kind::automatic),
                                     sc::world::from_environment(),
                                     {.name = "fused_norm",
                                      .sharing = sc::device_sharing::allowed,
                                      .paths = paths_by(word(0, "auto"))});
  for (const std::string& count : tokens) {
    measure(comm, static_cast<std::size_t>(std::stoul(count)), hidden, iterations);
  }
  comm.close(20s);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 4;
  }
}
