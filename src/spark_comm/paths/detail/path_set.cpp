// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/comm/detail/path_support.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/module.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/peer_segment.hpp>
#include <spark_comm/paths/detail/path_offer.hpp>
#include <spark_comm/paths/detail/path_set.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/rendezvous/world.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm::detail {
namespace {

path_table read_table(const path_options& options, runtime_kind kind) {
  if (options.max_bytes == 0) {
    return path_table{};
  }
  if (!options.table.empty()) {
    return path_table::parse(options.table, "paths.table");
  }
  return options.table_file.empty() ? path_table::defaults(kind)
                                    : path_table::load(options.table_file);
}

// Low latency moves twice the bytes, so beyond this size it never gains.
constexpr std::size_t largest_low_latency = std::size_t{64} << 10U;

std::size_t rounded_up(std::size_t bytes, std::size_t boundary) noexcept {
  return (bytes + boundary - 1) / boundary * boundary;
}

kernels::segment_limits limits_of(const path_options& options, int world_size) noexcept {
  return {.staging_bytes = rounded_up(options.max_bytes, 256),
          .low_latency_bytes = rounded_up(std::min(options.max_bytes, largest_low_latency), 16),
          .world = world_size};
}

}  // namespace

path_set::path_set(const runtime& loaded,
                   const cuda::device& device,
                   const world& place,
                   const join_options& options)
    : loaded_(loaded),
      device_(device),
      place_(place),
      name_(options.name),
      options_(options.paths),
      table_(read_table(options.paths, loaded.kind())),
      limits_(limits_of(options.paths, place.world_size)),
      capabilities_({.world_size = place.world_size}),
      slots_(static_cast<std::size_t>(options.paths.max_streams)) {
  if (may_be_wanted()) {
    words_.emplace(device_, static_cast<std::size_t>(options_.max_streams));
  }
}

bool path_set::is_wanted() const noexcept {
  return place_.world_size > 1 && uses_kernels(table_, place_.world_size);
}

// Kernels may be wanted in this world, or in what is left of it after a reconnect.
bool path_set::may_be_wanted() const noexcept {
  for (int ranks = 2; ranks <= place_.world_size; ++ranks) {
    if (uses_kernels(table_, ranks)) {
      return true;
    }
  }
  return false;
}

rendezvous::fact path_set::agreement() const {
  return {.name = "path table",
          .value = fmt::format("{:016x}, up to {} bytes, {} streams",
                               table_.hash(),
                               options_.max_bytes,
                               options_.max_streams),
          .rule = rendezvous::fact_rule::equal};
}

path_offer path_set::make_offer() {
  path_offer mine;
  set_text(mine.host, this_host());
  const auto streams = static_cast<std::size_t>(options_.max_streams);
  try {
    static_cast<void>(kernels());
    if (place_.world_size == 2) {
      receive_ = cuda::device_buffer::allocate(device_, streams * limits_.staging_bytes);
    }
    mine.has_kernels = 1;
    if (uses_peer_memory(table_, place_.world_size) && place_.world_size <= kernels::max_world) {
      peers_.emplace(device_, place_.rank, limits_, streams);
      mine.segments = peers_->handle();
      mine.has_segments = 1;
    } else {
      set_text(mine.reason, fmt::format("no path for {} ranks needs it", place_.world_size));
    }
  } catch (const std::exception& failure) {
    set_text(mine.reason, failure.what());
  }
  return mine;
}

std::vector<path_offer> path_set::share(rendezvous::session& line,
                                        const path_offer& mine,
                                        const deadline& until) const {
  std::vector<path_offer> offers;
  for (const rendezvous::bytes& each : line.all_gather(encode(mine), until)) {
    offers.push_back(decode_offer(each));
  }
  return offers;
}

void path_set::connect(rendezvous::session& line, const deadline& until) {
  // Survivors that go on alone learn their place from the meeting.
  place_ = line.place();
  limits_ = limits_of(options_, place_.world_size);
  capabilities_ = {.world_size = place_.world_size};
  if (!is_wanted()) {
    return;
  }
  const std::vector<path_offer> offers = share(line, make_offer(), until);
  capabilities_.reach = are_near(offers) ? world_reach::near : world_reach::far;
  if (const auto missing = first_without(offers, &path_offer::has_kernels)) {
    say_without("kernels of its own", *missing);
    release();
    return;
  }
  if (receive_) {
    capabilities_.exchange_bytes = options_.max_bytes;
  }
  if (uses_peer_memory(table_, place_.world_size)) {
    connect_peers(line, offers, until);
  }
}

void path_set::connect_peers(rendezvous::session& line,
                             const std::vector<path_offer>& offers,
                             const deadline& until) {
  std::optional<missing_part> missing = first_without(offers, &path_offer::has_segments);
  if (capabilities_.reach == world_reach::far) {
    loaded_.log().report(
        severity::info,
        fmt::format("'{}': its ranks are on several hosts, so none maps another's memory", name_));
    peers_.reset();
    return;
  }
  if (!missing) {
    // What one rank cannot open, none may use.
    missing = first_without(share(line, open_peers(offers), until), &path_offer::has_segments);
  }
  if (missing) {
    say_without("memory that its ranks share", *missing);
    peers_.reset();
    return;
  }
  capabilities_.staging_bytes = options_.max_bytes;
  capabilities_.low_latency_bytes = std::min(options_.max_bytes, largest_low_latency);
}

path_offer path_set::open_peers(const std::vector<path_offer>& offers) {
  path_offer opened = offers[static_cast<std::size_t>(place_.rank)];
  for (int peer = 0; peer < place_.world_size; ++peer) {
    try {
      if (peer != place_.rank) {
        peers_->open(peer, offers[static_cast<std::size_t>(peer)].segments);
      }
    } catch (const error& failure) {
      opened.has_segments = 0;
      set_text(opened.reason,
               fmt::format("rank {} cannot be mapped: {} ({})",
                           peer,
                           failure.native().function,
                           failure.native().text));
      break;
    }
  }
  return opened;
}

void path_set::say_without(const std::string& what, const missing_part& missing) const {
  loaded_.log().report(severity::warning,
                       fmt::format("'{}' has no {}, and messages go by NCCL alone: rank {}: {}",
                                   name_,
                                   what,
                                   missing.rank,
                                   missing.reason));
}

std::optional<native_failure> path_set::failure() const {
  return words_ ? words_->failure() : std::nullopt;
}

void path_set::abort() noexcept {
  if (words_) {
    words_->abort();
  }
}

bool path_set::is_shared() const noexcept {
  return peers_.has_value();
}

void path_set::disconnect() noexcept {
  if (peers_) {
    peers_->close_peers();
  }
}

void path_set::release() noexcept {
  // The peers' first: letting go of them waits for this device's work, which uses both.
  disconnect();
  peers_.reset();
  receive_.reset();
  kernels_.reset();
}

chosen_path path_set::choose(const path_query& asked, cuda::stream_ref s) {
  const path_kind kind = choose_path(table_, asked, capabilities_);
  if (kind == path_kind::nccl) {
    return {};
  }
  const std::scoped_lock lock{slots_mutex_};
  const std::optional<std::size_t> slot = slots_.of(s.get());
  return slot ? chosen_path{.kind = kind, .slot = *slot} : chosen_path{};
}

const kernels::kernel_module& path_set::kernels() {
  if (!kernels_) {
    kernels_ = kernels::kernel_module::load(device_,
                                            loaded_.kind() == runtime_kind::host
                                                ? kernels::image_kind::host
                                                : kernels::image_kind::gpu);
  }
  return *kernels_;
}

kernels::peer_segments path_set::segments(std::size_t slot, duration wait_limit) const {
  return {.addresses = peers_->segment(slot),
          .limits = limits_,
          .rank = place_.rank,
          .status = words_->status(slot),
          .abort_word = words_->abort_word(),
          .wait_limit = wait_limit};
}

const cuda::stream& path_set::next_own_stream() {
  std::optional<cuda::stream>& next = own_streams_[own_streams_used_++ % own_streams_.size()];
  if (!next) {
    next = device_.create_stream();
  }
  return *next;
}

void* path_set::receive_buffer(std::size_t slot) const noexcept {
  return static_cast<std::byte*>(receive_->address()) + slot * limits_.staging_bytes;
}

std::shared_ptr<path_support> make_path_support(const runtime& loaded,
                                                const cuda::device& device,
                                                const world& place,
                                                const join_options& options) {
  return std::make_shared<path_set>(loaded, device, place, options);
}

path_set& paths_of(const communicator_core& core) noexcept {
  // `make_path_support` makes nothing else.
  return static_cast<path_set&>(core.paths());
}

}  // namespace spark_comm::detail
