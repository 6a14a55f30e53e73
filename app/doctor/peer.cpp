// SPDX-License-Identifier: AGPL-3.0-only
#include "doctor/peer.hpp"

#include "build_info.hpp"
#include "doctor/doctor.hpp"
#include "doctor/finding.hpp"
#include "doctor/machine_files.hpp"
#include "doctor/pair_checks.hpp"
#include "doctor/snapshot.hpp"

#include <spark_comm/collectives/all_reduce.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/network_port.hpp>
#include <spark_comm/rendezvous/secret.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/rendezvous/shared_link.hpp>
#include <spark_comm/rendezvous/world.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spark_comm::app::doctor {
namespace {

constexpr std::size_t block_bytes = std::size_t{8} << 20U;
constexpr int blocks = 8;
// Each block goes both ways, and a port counts both.
constexpr std::uint64_t burst_bytes = 2 * blocks * block_bytes;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}

std::string as_text(const rendezvous::bytes& raw) {
  return {reinterpret_cast<const char*>(raw.data()), raw.size()};
}

bool is_local(const std::string& host) {
  const auto ports = rendezvous::local_ports();
  const bool is_wildcard = host == "0.0.0.0" || host == "::";
  return is_wildcard ||
         std::ranges::find(ports, host, &rendezvous::network_port::address) != ports.end();
}

/// The meeting of the two machines, and who is who.
struct pair_meeting {
  int rank = 0;
  std::unique_ptr<rendezvous::session> line;
  machine_snapshot mine;
  machine_snapshot theirs;
  deadline until;
};

rendezvous::meeting_options keyed() {
  rendezvous::meeting_options options;
  options.key = rendezvous::secret::from_environment();
  return options;
}

pair_meeting meet(const doctor_options& options, const machine_files& files) {
  const deadline until = deadline::after(options.deadline);
  const std::string host = rendezvous::parse_address(options.peer).host;
  const int rank = options.rank.value_or(is_local(host) ? 0 : 1);
  rendezvous::hello mine;
  mine.facts.push_back(
      {"spark-comm doctor", std::string{build_version()}, rendezvous::fact_rule::equal});
  auto line = rendezvous::session::meet({options.peer, rank, 2}, mine, until, keyed());
  const auto recordings = line->all_gather(as_bytes(files.to_recording()), until);
  const auto theirs =
      machine_files::parse(as_text(recordings.at(static_cast<std::size_t>(1 - rank))));
  return {.rank = rank,
          .line = std::move(line),
          .mine = read_snapshot(files),
          .theirs = read_snapshot(theirs),
          .until = until};
}

/// Where the burst goes: both compute it from the same tables, and so find the same.
struct burst_route {
  std::string address;                ///< The head's.
  std::vector<std::string> expected;  ///< Ports of this machine that should count it.
};

std::optional<burst_route> route_of(const pair_meeting& pair) {
  const bool is_head = pair.rank == 0;
  const machine_snapshot& head = is_head ? pair.mine : pair.theirs;
  const machine_snapshot& other = is_head ? pair.theirs : pair.mine;
  if (are_one_machine(head, other)) {
    return burst_route{.address = "127.0.0.1", .expected = {"lo"}};
  }
  const auto links = rendezvous::shared_links(head.ports, other.ports);
  if (links.empty()) {
    return std::nullopt;
  }
  burst_route route{.address = links.front().mine.address, .expected = {}};
  for (const rendezvous::shared_link& link : links) {
    const rendezvous::network_port& here = is_head ? link.mine : link.theirs;
    const bool is_best = &link == &links.front();
    for (const roce_port& port : pair.mine.roce) {
      if (port.interface == here.interface && port.is_active) {
        route.expected.push_back(port.device);
      }
    }
    if (is_best) {
      route.expected.push_back(here.interface);
    }
  }
  return route;
}

/// Meets again at the head's end of the link. `join` is given the place and, on the head, whom to
/// tell the port.
template <typename Join>
auto meet_at(const pair_meeting& pair, const std::string& host, Join join) {
  const auto tell = [&](const std::string& address) {
    (void)pair.line->broadcast(as_bytes(address), pair.until);
  };
  if (pair.rank == 0) {
    return join(world{rendezvous::to_string({.host = host, .port = 0}), 0, 2}, tell);
  }
  const std::string address = as_text(pair.line->broadcast({}, pair.until));
  return join(world{address, 1, 2}, {});
}

using listening = std::function<void(const std::string&)>;

void burst_over_sockets(const pair_meeting& pair, const std::string& host) {
  const auto line = meet_at(pair, host, [&](const world& place, listening on_listening) {
    rendezvous::meeting_options options = keyed();
    options.on_listening = std::move(on_listening);
    return rendezvous::session::meet(place, {}, pair.until, options);
  });
  const std::vector<std::byte> block(block_bytes);
  for (int i = 0; i < blocks; ++i) {
    (void)line->all_gather(block, pair.until);
  }
}

void burst_over_nccl(const pair_meeting& pair, const std::string& host) {
  communicator comm = meet_at(pair, host, [&](const world& place, listening on_listening) {
    join_options options{.name = "doctor", .deadline = pair.until.remaining()};
    options.on_listening = std::move(on_listening);
    return communicator::join(runtime::load(runtime_kind::nvidia), place, options);
  });
  const cuda::stream s = comm.device().create_stream();
  const cuda::device_buffer block = cuda::device_buffer::allocate(comm.device(), block_bytes);
  for (int i = 0; i < blocks; ++i) {
    all_reduce(comm, block.as<float>(), reduce_op::sum, s);
  }
  if (comm.wait(s, pair.until.remaining()) == wait_result::timed_out) {
    throw error{errc::timed_out, "doctor: the burst did not end"};
  }
  comm.close(std::chrono::seconds{5});
}

bool has_nccl(const machine_snapshot& machine) {
  return !machine.gpus.empty() && machine.has_libcuda && !machine.nccl.empty();
}

finding send_burst(const pair_meeting& pair, const burst_route& route) {
  const port_counters before = read_counters(machine_files::read_counters("/"));
  if (has_nccl(pair.mine) && has_nccl(pair.theirs) && !are_one_machine(pair.mine, pair.theirs)) {
    burst_over_nccl(pair, route.address);
  } else {
    burst_over_sockets(pair, route.address);
  }
  const port_counters after = read_counters(machine_files::read_counters("/"));
  return judge_burst(before, after, burst_bytes, route.expected);
}

}  // namespace

findings examine_pair(const doctor_options& options, const machine_files& files) {
  const pair_meeting pair = meet(options, files);
  findings out = compare_machines(pair.mine, pair.theirs);
  if (const auto route = route_of(pair)) {
    out.push_back(send_burst(pair, *route));
  }
  return out;
}

}  // namespace spark_comm::app::doctor
