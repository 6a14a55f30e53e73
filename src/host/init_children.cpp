// SPDX-License-Identifier: AGPL-3.0-only
// Communicators made out of another: split (all ranks of the parent take part) and shrink (the
// survivors alone).
#include "group.hpp"
#include "init.hpp"
#include "last_error.hpp"
#include "polling.hpp"
#include "unique_ids.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

namespace spark_comm::host::nccl {
namespace {

// What a child is made of, in the parent's rank numbers; the first member leads.
struct child_plan {
  communicator_ptr parent;
  settings options;
  bool shares = false;
  std::vector<int> members;

  [[nodiscard]] int leader() const noexcept { return members.front(); }

  [[nodiscard]] bool leads() const noexcept { return leader() == parent->rank(); }
};

struct split_wish {
  int color;
  int key;
};

// The leader makes the child's file; its descriptor lives in the leader's communicator.
int make_segment(segment& shared, segment_address& address) {
  std::uint64_t token = 0;
  if (const int code = make_token(token); code != results::success) {
    return code;
  }
  constexpr std::size_t bytes = segment_layout::header_bytes();
  if (const int code = shared.create(bytes, bytes); code != results::success) {
    return code;
  }
  if (const int code = shared.map(bytes); code != results::success) {
    return code;
  }
  reinterpret_cast<segment_header*>(shared.data())->token = token;
  return shared.describe(token, address);
}

int join_child(const child_plan& plan,
               segment shared,
               const segment_address& address,
               communicator_ptr& child) {
  if (address.magic == 0) {
    return refuse(
        results::remote_error, "rank {} could not make the child's shared memory", plan.leader());
  }
  const auto self = std::ranges::find(plan.members, plan.parent->rank());
  const arrival seat{.rank = static_cast<int>(self - plan.members.begin()),
                     .world_size = static_cast<int>(plan.members.size()),
                     .device = plan.parent->device()};
  child = std::make_shared<communicator>(
      seat,
      plan.options,
      plan.shares ? plan.parent->abort_flag() : std::make_shared<std::atomic<bool>>(false));
  if (!shared.is_open()) {
    if (const int code = shared.open(address); code != results::success) {
      return code;
    }
  }
  return child->join(std::move(shared), address.token, *plan.parent->abort_flag());
}

template <typename T>
int exchange_all(communicator& comm, const T& mine, std::vector<T>& all) {
  std::vector<std::byte> bytes;
  const int code = comm.exchange(std::as_bytes(std::span{&mine, 1}), bytes);
  all.resize(bytes.size() / sizeof(T));
  std::memcpy(static_cast<void*>(all.data()), bytes.data(), bytes.size());
  return code;
}

// The parent's ranks of one colour, by key and then by rank.
std::vector<int> members_of(int color, const std::vector<split_wish>& wishes) {
  std::vector<int> members;
  for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
    if (wishes[rank].color == color) {
      members.push_back(static_cast<int>(rank));
    }
  }
  std::ranges::stable_sort(
      members, {}, [&](int rank) { return wishes[static_cast<std::size_t>(rank)].key; });
  return members;
}

int do_split(child_plan plan, split_wish wish, communicator_ptr& child) {
  std::vector<split_wish> wishes;
  if (const int code = exchange_all(*plan.parent, wish, wishes); code != results::success) {
    return code;
  }
  const bool is_member = wish.color != split_no_color;
  segment shared;
  segment_address address;
  int made = results::success;
  if (is_member) {
    plan.members = members_of(wish.color, wishes);
    if (plan.leads()) {
      made = make_segment(shared, address);
    }
  }
  if (made != results::success) {
    address = {};  // tells the members that there is nothing to join
  }
  std::vector<segment_address> addresses;
  if (const int code = exchange_all(*plan.parent, address, addresses); code != results::success) {
    return code;
  }
  if (!is_member || made != results::success) {
    return made;
  }
  return join_child(
      plan, std::move(shared), addresses[static_cast<std::size_t>(plan.leader())], child);
}

// Tells apart shrinks of one parent: to whom, and the how manieth (every survivor counts alike).
std::uint64_t shrink_key(communicator& parent, const std::vector<int>& members) {
  std::uint64_t mask = 0;
  for (const int rank : members) {
    mask |= std::uint64_t{1} << static_cast<unsigned int>(rank);
  }
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  const std::uint64_t count = ++parent.shrinks_to[mask];
  return (mask * golden ^ count) * golden | 1U;
}

int do_shrink(const child_plan& plan, std::uint64_t key, communicator_ptr& child) {
  static_assert(sizeof(segment_address) <= exchange_bytes);
  announcement_line& line = plan.parent->announcement(plan.leader());
  segment shared;
  segment_address address;
  if (plan.leads()) {
    const int code = make_segment(shared, address);
    std::memcpy(line.payload.data(), &address, sizeof address);
    // Release: the payload before its key.
    line.key.store(key, std::memory_order_release);
    if (code != results::success) {
      return code;
    }
  } else {
    const bool is_there = poll_until(
        // Acquire: pairs with the store above.
        [&] { return line.key.load(std::memory_order_acquire) == key; },
        [&] { return plan.parent->is_aborted(); });
    if (!is_there) {
      return refuse(results::internal_error, "aborted while waiting for rank {}", plan.leader());
    }
    std::memcpy(&address, line.payload.data(), sizeof address);
  }
  return join_child(plan, std::move(shared), address, child);
}

// A job that makes a child: `make` fills it, and the program sees it when all is over.
template <typename Make>
int add_child_job(const communicator_ptr& parent, ncclComm** out, Make make) {
  auto child = std::make_shared<communicator_ptr>();
  return add_job({
      .owner = parent,
      .is_blocking = parent->options().is_blocking,
      .work = [make = std::move(make), child] { return make(*child); },
      .conclude =
          [child, out](int code) {
            if (code == results::success && *child != nullptr) {
              *out = publish(*child);
            }
          },
  });
}

int check_child(const call_guard& call, ncclComm** out) {
  if (const int code = check_ready(call); code != results::success) {
    return code;
  }
  if (out == nullptr) {
    return refuse(results::invalid_argument, "{} : newcomm argument is NULL", call.name);
  }
  *out = nullptr;
  return results::success;
}

}  // namespace

int add_split(const call_guard& call, int color, int key, ncclComm** out, const config* options) {
  if (const int code = check_child(call, out); code != results::success) {
    return code;
  }
  if (color < 0 && color != split_no_color) {
    return refuse(results::invalid_argument, "{} : invalid color {}", call.name, color);
  }
  child_plan plan{.parent = call.comm, .options = {}, .members = {}};
  if (const int code = read_config(options, call.comm->options(), plan.options);
      code != results::success) {
    return code;
  }
  plan.shares = plan.options.shares_on_split && !call.comm->is_revoked();
  return add_child_job(call.comm, out, [plan, color, key](communicator_ptr& child) {
    return do_split(plan, {color, key}, child);
  });
}

int add_shrink(const call_guard& call,
               std::vector<int> excluded,
               ncclComm** out,
               const config* options) {
  if (const int code = check_child(call, out); code != results::success) {
    return code;
  }
  child_plan plan{.parent = call.comm, .options = {}, .members = {}};
  if (const int code = read_config(options, call.comm->options(), plan.options);
      code != results::success) {
    return code;
  }
  plan.shares = plan.options.shares_on_shrink && !call.comm->is_revoked();
  for (int rank = 0; rank < call.comm->world_size(); ++rank) {
    if (std::ranges::find(excluded, rank) == excluded.end()) {
      plan.members.push_back(rank);
    }
  }
  const std::uint64_t shrink = shrink_key(*call.comm, plan.members);
  return add_child_job(call.comm, out, [plan, shrink](communicator_ptr& child) {
    return do_shrink(plan, shrink, child);
  });
}

}  // namespace spark_comm::host::nccl
