// SPDX-License-Identifier: AGPL-3.0-only
#include "communicator.hpp"

#include "bootstrap.hpp"
#include "config.hpp"
#include "nccl_abi.hpp"
#include "polling.hpp"
#include "segment.hpp"
#include "segment_layout.hpp"
#include "unique_ids.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>

namespace spark_comm::host::nccl {
namespace {

// Process state that the C interface cannot do without. Never destroyed: helper threads and stream
// tasks may still be running while the process exits.
struct handle_table {
  std::shared_mutex mutex;
  std::unordered_map<const ncclComm*, communicator_ptr> live;
};

handle_table& process_handles() noexcept {
  static auto* table = new handle_table;  // NOLINT(cppcoreguidelines-owning-memory): see above
  return *table;
}

}  // namespace

void background_job::join() noexcept {
  const std::scoped_lock lock{mutex_};
  if (!thread_.joinable()) {
    return;
  }
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // the last owner is the thread itself, on its way out
  } else {
    thread_.join();
  }
}

communicator::communicator(arrival self,
                           settings options,
                           std::shared_ptr<std::atomic<bool>> abort_flag)
    : self_(self),
      options_(std::move(options)),
      abort_flag_(std::move(abort_flag)),
      layout_{static_cast<std::size_t>(self.world_size)},
      has_channel_(static_cast<std::size_t>(self.world_size)) {}

communicator::~communicator() {
  release_unique_id(token_);
}

int communicator::join(const segment_address& address) {
  segment opened;
  if (const int code = opened.open(address); code != results::success) {
    return code;
  }
  return join(std::move(opened), address.token, *abort_flag_);
}

int communicator::join(segment shared, std::uint64_t token, const std::atomic<bool>& is_aborted) {
  shared_ = std::move(shared);
  token_ = token;
  const int code = join_segment(shared_, token, self_, is_aborted);
  if (code == results::success) {
    exchange_ = std::make_unique<rank_exchange>(shared_.data(), layout_, self_.rank);
  }
  return code;
}

int communicator::exchange(std::span<const std::byte> mine, std::vector<std::byte>& all) {
  return exchange_->run(mine, all, *abort_flag_);
}

int communicator::reserve_channel(int peer) {
  const auto to = static_cast<std::size_t>(peer);
  if (has_channel_[to]) {
    return results::success;
  }
  const auto from = static_cast<std::size_t>(self_.rank);
  const int code =
      shared_.reserve(layout_.channel_data_at(from, to), channel_slot_count * channel_slot_bytes);
  has_channel_[to] = code == results::success;
  return code;
}

void communicator::drain() noexcept {
  static_cast<void>(poll_until([this] { return gate.is_idle() && running == 0 && captured == 0; },
                               [this] { return is_aborted(); }));
}

void communicator::wait_for_running() noexcept {
  static_cast<void>(poll_until([this] { return running == 0; }, [] { return false; }));
}

void communicator::wait_for_graphs() noexcept {
  static_cast<void>(poll_until([this] { return captured == 0; }, [] { return false; }));
}

void communicator::set_background(std::shared_ptr<background_job> job) {
  join_background();
  const std::scoped_lock lock{background_mutex_};
  background_ = std::move(job);
}

void communicator::join_background() noexcept {
  std::shared_ptr<background_job> last;
  {
    const std::scoped_lock lock{background_mutex_};
    last = std::exchange(background_, nullptr);
  }
  if (last != nullptr) {
    last->join();
  }
}

announcement_line& communicator::announcement(int rank) const noexcept {
  return *reinterpret_cast<announcement_line*>(
      at(layout_.announcement_at(static_cast<std::size_t>(rank))));
}

board_lines& communicator::board(int rank) const noexcept {
  return *reinterpret_cast<board_lines*>(at(layout_.board_at(static_cast<std::size_t>(rank))));
}

std::byte* communicator::staging(int rank, std::uint64_t step) const noexcept {
  return at(layout_.staging_at(static_cast<std::size_t>(rank)) + step % slot_count * slot_bytes);
}

channel_lines& communicator::channel(int from, int to) const noexcept {
  return *reinterpret_cast<channel_lines*>(
      at(layout_.channel_at(static_cast<std::size_t>(from), static_cast<std::size_t>(to))));
}

std::byte* communicator::channel_slot(int from, int to, std::uint64_t step) const noexcept {
  const std::size_t ring =
      layout_.channel_data_at(static_cast<std::size_t>(from), static_cast<std::size_t>(to));
  return at(ring + step % channel_slot_count * channel_slot_bytes);
}

ncclComm* publish(const communicator_ptr& comm) {
  auto* handle = reinterpret_cast<ncclComm*>(comm.get());
  handle_table& table = process_handles();
  const std::scoped_lock lock{table.mutex};
  table.live.emplace(handle, comm);
  return handle;
}

communicator_ptr find_communicator(const ncclComm* handle) noexcept {
  handle_table& table = process_handles();
  const std::shared_lock lock{table.mutex};
  const auto found = table.live.find(handle);
  return found == table.live.end() ? nullptr : found->second;
}

bool retire(const ncclComm* handle) noexcept {
  communicator_ptr last;  // its destruction happens outside the lock
  handle_table& table = process_handles();
  const std::scoped_lock lock{table.mutex};
  const auto found = table.live.find(handle);
  if (found == table.live.end()) {
    return false;
  }
  last = std::move(found->second);
  table.live.erase(found);
  return true;
}

void set_async_error(communicator& comm, int code) noexcept {
  comm.state.fail(code);
}

}  // namespace spark_comm::host::nccl
