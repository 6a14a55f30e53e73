// SPDX-License-Identifier: AGPL-3.0-only
// Host time that supervision adds to an operation: writing it down, signing it, and handing it to
// the watchdog. No communicator, no device. Prints one JSON object.
//
//     submission [flight record directory]
#include <spark_comm/supervise/flight_record.hpp>
#include <spark_comm/supervise/in_flight.hpp>
#include <spark_comm/supervise/signature_log.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace spark_comm;

constexpr int batches = 401;
constexpr std::uint64_t batch_size = 1000;

operation_record make_record(std::uint64_t sequence) {
  operation_record record{.sequence = sequence, .count_elements = 8192, .stream = 7};
  record.dtype = data_type::bfloat16;
  return record;
}

/// Median nanoseconds a call. `between` runs after each batch and is not timed.
double measure(
    const std::function<void(std::uint64_t)>& batch, const std::function<void()>& between = [] {}) {
  std::vector<double> costs;
  for (int each = 0; each < batches; ++each) {
    const time_point start = steady_time().now();
    batch(static_cast<std::uint64_t>(each) * batch_size + 1);
    const std::chrono::duration<double, std::nano> taken = steady_time().now() - start;
    costs.push_back(taken.count() / static_cast<double>(batch_size));
    between();
  }
  std::ranges::nth_element(costs, costs.begin() + batches / 2);
  return costs[batches / 2];
}

probe_result at_once(void* /*context*/, std::uint64_t /*token*/) noexcept {
  return {.state = probe_state::done};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : "";
  auto record = flight_record::create({}, directory);
  signature_log log{2};
  in_flight_table table;

  const double clock_ns = measure([](std::uint64_t first) {
    for (std::uint64_t each = first; each < first + batch_size; ++each) {
      (void)steady_time().now();
    }
  });
  const time_point now = steady_time().now();
  const double record_ns = measure([&](std::uint64_t first) {
    for (std::uint64_t each = first; each < first + batch_size; ++each) {
      record.submitted(make_record(each), now, each);
    }
  });
  const double signature_ns = measure([&](std::uint64_t first) {
    for (std::uint64_t each = first; each < first + batch_size; ++each) {
      operation_record made = make_record(each);
      log.append(made);
    }
  });
  in_flight_operation operation;
  operation.probe.poll = at_once;
  const double table_ns = measure(
      [&](std::uint64_t first) {
        for (std::uint64_t each = first; each < first + batch_size; ++each) {
          operation.record = make_record(each);
          table.push(operation);
        }
      },
      [&] { table.poll(now, [](const in_flight_change&) {}); });
  std::printf(
      "{\"unit\":\"ns\",\"clock\":%.1f,\"flight_record\":%.1f,\"signature\":%.1f,"
      "\"in_flight\":%.1f,\"record_in\":\"%s\"}\n",
      clock_ns,
      record_ns,
      signature_ns,
      table_ns,
      directory.empty() ? "memory" : "file");
  return 0;
}
