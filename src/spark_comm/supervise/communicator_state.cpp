// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/supervise/communicator_state.hpp>

#include <atomic>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

namespace spark_comm {
namespace {

using state = communicator_state;
using event = communicator_event;
using action = communicator_action;

std::optional<state> after_joined(state from) noexcept {
  // Any other state was reached while the join was under way, and wins.
  return from == state::joining ? std::optional{state::ready} : std::nullopt;
}

std::optional<state> after_failed(state from) noexcept {
  return from == state::joining || from == state::ready ? state::broken : from;
}

std::optional<state> after_aborted(state from) noexcept {
  return from == state::closed ? state::closed : state::aborted;
}

std::optional<state> after_rejoining(state from) noexcept {
  switch (from) {
    case state::ready:  // the others may have lost somebody that this rank has not missed yet
    case state::broken:
    case state::aborted: return state::joining;
    case state::joining:
    case state::closed:  return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(communicator_state state) noexcept {
  switch (state) {
    case communicator_state::joining: return "joining";
    case communicator_state::ready:   return "ready";
    case communicator_state::broken:  return "broken";
    case communicator_state::aborted: return "aborted";
    case communicator_state::closed:  return "closed";
  }
  return "unknown";
}

std::string_view name_of(communicator_event event) noexcept {
  switch (event) {
    case communicator_event::joined:    return "joined";
    case communicator_event::failed:    return "failed";
    case communicator_event::aborted:   return "aborted";
    case communicator_event::closed:    return "closed";
    case communicator_event::rejoining: return "rejoining";
  }
  return "unknown";
}

std::string_view name_of(communicator_action action) noexcept {
  switch (action) {
    case communicator_action::query:     return "query";
    case communicator_action::operate:   return "operate";
    case communicator_action::abort:     return "abort";
    case communicator_action::close:     return "close";
    case communicator_action::reconnect: return "reconnect";
  }
  return "unknown";
}

std::optional<communicator_state> next_state(communicator_state from,
                                             communicator_event happened) noexcept {
  switch (happened) {
    case event::joined:    return after_joined(from);
    case event::failed:    return after_failed(from);
    case event::aborted:   return after_aborted(from);
    case event::closed:    return state::closed;
    case event::rejoining: return after_rejoining(from);
  }
  return std::nullopt;
}

permission permission_for(communicator_state in, communicator_action wanted) noexcept {
  switch (wanted) {
    case action::query:   return permission::allowed;
    case action::operate: return in == state::ready ? permission::allowed : permission::refused;
    case action::abort:
      return in == state::aborted || in == state::closed ? permission::no_effect
                                                         : permission::allowed;
    case action::close:     return in == state::closed ? permission::no_effect : permission::allowed;
    case action::reconnect: return after_rejoining(in) ? permission::allowed : permission::refused;
  }
  return permission::refused;
}

bool communicator_status::apply(communicator_event event) noexcept {
  return move(event, nullptr);
}

bool communicator_status::fail(std::shared_ptr<const error> cause) noexcept {
  return move(communicator_event::failed, std::move(cause));
}

bool communicator_status::move(communicator_event event,
                               std::shared_ptr<const error> cause) noexcept {
  const std::scoped_lock lock{mutex_};
  const communicator_state from = state_.load(std::memory_order_relaxed);
  const auto to = next_state(from, event);
  if (!to || *to == from) {
    return false;
  }
  if (*to == communicator_state::broken) {
    first_error_ = std::move(cause);
  } else if (*to == communicator_state::joining || *to == communicator_state::ready) {
    first_error_ = nullptr;
  }
  // Release: pairs with `state`.
  state_.store(*to, std::memory_order_release);
  return true;
}

std::shared_ptr<const error> communicator_status::first_error() const noexcept {
  const std::scoped_lock lock{mutex_};
  return first_error_;
}

bool communicator_status::require(communicator_action wanted, const error_context& context) const {
  const communicator_state in = state();
  switch (permission_for(in, wanted)) {
    case permission::allowed:   return true;
    case permission::no_effect: return false;
    case permission::refused:   break;
  }
  const auto first = first_error();
  if (in == communicator_state::broken && first) {
    throw error{*first};
  }
  if (in == communicator_state::aborted) {
    throw error{errc::aborted,
                first ? fmt::format("aborted after: {}", first->message())
                      : std::string{"the communicator was aborted; reconnect or join anew"},
                context};
  }
  throw error{errc::invalid_usage,
              fmt::format("cannot {} while the communicator is {}", name_of(wanted), name_of(in)),
              context};
}

}  // namespace spark_comm
