// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/detail/connection.hpp>
#include <spark_comm/rendezvous/detail/meeting.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>

#include <algorithm>
#include <asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <sys/random.h>
#include <utility>
#include <vector>

namespace spark_comm::rendezvous::detail {
namespace {

constexpr std::size_t max_guests = 128;

}  // namespace

error_context context_of(const meeting_plan& plan, std::vector<int> peers) {
  error_context context;
  context.operation = "meet";
  context.rank = plan.place.rank;
  context.world_size = plan.place.world_size;
  context.peers = std::move(peers);
  context.deadline = plan.until.span();
  return context;
}

void check_trust(const meeting_plan& plan, const std::vector<tcp::endpoint>& endpoints) {
  if (plan.keys) {
    return;
  }
  for (const tcp::endpoint& each : endpoints) {
    if (!each.address().is_loopback()) {
      throw error{errc::invalid_argument,
                  fmt::format("{} is not a loopback address, and meeting there needs a key: set "
                              "SPARK_COMM_KEY_FILE or the key of the meeting's options",
                              to_text(each)),
                  context_of(plan)};
    }
  }
}

std::optional<tcp::endpoint> endpoint_seen_from(const tcp::endpoint& local,
                                                const std::string& listener) {
  auto where = try_parse_numeric(listener);
  if (where && where->address().is_v6() && where->address().to_v6().is_link_local() &&
      local.address().is_v6()) {
    auto scoped = where->address().to_v6();
    scoped.scope_id(local.address().to_v6().scope_id());
    where->address(scoped);
  }
  return where;
}

void fill_random(std::span<std::byte> out) {
  while (!out.empty()) {
    const auto got = ::getrandom(out.data(), out.size(), 0);
    if (got < 0) {
      if (errno != EINTR) {
        throw_errno("getrandom", "no random numbers for the meeting", errno);
      }
      continue;
    }
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

void run_until(asio::io_context& io,
               const deadline& until,
               const std::exception_ptr& failure,
               const std::function<bool()>& is_over,
               const std::stop_token& cancel) {
  io.restart();
  const std::stop_callback wake{cancel, [&io] { asio::post(io, [] {}); }};
  while (!failure && !is_over()) {
    if (cancel.stop_requested()) {
      throw error{errc::aborted, "this rank gave up meeting the others"};
    }
    const duration left = until.remaining();
    if (left <= duration::zero()) {
      return;
    }
    if (io.run_one_for(left) == 0 && io.stopped()) {
      break;  // nothing is left that could change anything
    }
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

void waiting_room::enter(const std::shared_ptr<connection>& guest) {
  std::erase_if(guests_, [](const std::weak_ptr<connection>& each) { return each.expired(); });
  if (guests_.size() >= max_guests) {
    if (const auto oldest = guests_.front().lock()) {
      oldest->close();
    }
    guests_.pop_front();
  }
  guests_.push_back(guest);
}

void waiting_room::leave(const std::shared_ptr<connection>& guest) noexcept {
  std::erase_if(guests_, [&](const std::weak_ptr<connection>& each) {
    return !each.owner_before(guest) && !guest.owner_before(each);
  });
}

void waiting_room::close_all() noexcept {
  for (const auto& each : guests_) {
    if (const auto guest = each.lock()) {
      guest->close();
    }
  }
  guests_.clear();
}

}  // namespace spark_comm::rendezvous::detail
