// SPDX-License-Identifier: AGPL-3.0-only
#include "timing.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/graph.hpp>
#include <spark_comm/cuda/stream.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace spark_comm::bench {
namespace {

constexpr int launches = 15;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// The median over several launches of `run`, each timed by events.
double timed_us(const cuda::stream& s,
                int count,
                const std::function<void()>& run,
                const std::function<void()>& meet) {
  cuda::event start = s.owner().create_timed_event();
  cuda::event end = s.owner().create_timed_event();
  std::vector<double> times;
  for (int i = 0; i < launches + 3; ++i) {
    meet();
    start.record(s);
    run();
    end.record(s);
    finish(s);
    if (i >= 3) {  // the first ones warm up
      times.push_back(static_cast<double>(cuda::event::elapsed_ms(start, end)) * 1000 / count);
    }
  }
  return median(times);
}

}  // namespace

void finish(const cuda::stream& s) {
  if (s.wait(std::chrono::seconds{20}) != wait_result::done) {
    throw error{errc::timed_out, "the stream did not finish within 20 s"};
  }
}

double back_to_back_us(const cuda::stream& s,
                       int count,
                       const enqueue_function& enqueue,
                       const std::function<void()>& meet) {
  enqueue(s);  // loads and warms what the capture must not
  finish(s);
  cuda::capture_scope capture{s.owner(), s};
  for (int i = 0; i < count; ++i) {
    enqueue(s);
  }
  const cuda::graph_exec graph = capture.end().instantiate();
  return timed_us(s, count, [&] { graph.launch(s); }, meet);
}

double eager_us(const cuda::stream& s,
                int count,
                const enqueue_function& enqueue,
                const std::function<void()>& meet) {
  const auto run = [&] {
    for (int i = 0; i < count; ++i) {
      enqueue(s);
    }
  };
  return timed_us(s, count, run, meet);
}

double synchronized_us(const cuda::stream& s, int count, const enqueue_function& enqueue) {
  using clock = std::chrono::steady_clock;
  const cuda::device_scope scope{s.owner()};
  const cuda::driver& driver = s.owner().loaded_driver();
  std::vector<double> times;
  for (int i = 0; i < count + 20; ++i) {
    const clock::time_point start = clock::now();
    enqueue(s);
    // The driver's own wait, as an engine does it; the kernels' waits are bounded.
    driver.check(driver.table().cuStreamSynchronize(s.ref().get()), "cuStreamSynchronize");
    if (i >= 20) {
      times.push_back(std::chrono::duration<double, std::micro>{clock::now() - start}.count());
    }
  }
  return median(times);
}

}  // namespace spark_comm::bench
