// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/rendezvous/detail/admission.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spark_comm::rendezvous::detail {
namespace {

constexpr std::string_view no_value = "(not given)";

const fact* find(const std::vector<fact>& facts, std::string_view name) {
  const auto found =
      std::ranges::find_if(facts, [name](const fact& each) { return each.name == name; });
  return found == facts.end() ? nullptr : &*found;
}

std::string_view value_of(const std::vector<fact>& facts, std::string_view name) {
  const fact* found = find(facts, name);
  return found == nullptr ? no_value : std::string_view{found->value};
}

/// The value as it is told, with the note beside it.
std::string told(const std::vector<fact>& facts, std::string_view name) {
  const fact* found = find(facts, name);
  if (found == nullptr) {
    return std::string{no_value};
  }
  const std::string_view value = found->value.empty() ? "none" : std::string_view{found->value};
  return found->note.empty() ? std::string{value} : fmt::format("{} ({})", value, found->note);
}

std::string difference(const seating& table, const hello_message& guest, std::string_view name) {
  return fmt::format("{} differs: rank {} has {}, rank {} has {}",
                     name,
                     guest.rank,
                     told(guest.facts, name),
                     table.host,
                     told(table.facts, name));
}

/// Both sides' facts, each name once; the head's rule counts where both have one.
std::vector<fact> named_by_either(const std::vector<fact>& head, const std::vector<fact>& guest) {
  std::vector<fact> all = head;
  std::ranges::copy_if(guest, std::back_inserter(all), [&](const fact& each) {
    return find(head, each.name) == nullptr;
  });
  return all;
}

/// Who else has the guest's value of a fact that must be distinct.
std::optional<int> rank_with_same(const seating& table,
                                  const hello_message& guest,
                                  std::string_view name) {
  const fact* mine = find(guest.facts, name);
  if (mine == nullptr) {
    return std::nullopt;
  }
  if (value_of(table.facts, name) == mine->value) {
    return table.host;
  }
  for (std::size_t rank = 0; rank < table.seats.size(); ++rank) {
    const auto& other = table.seats[rank];
    if (other && static_cast<int>(rank) != guest.rank &&
        value_of(other->facts, name) == mine->value) {
      return static_cast<int>(rank);
    }
  }
  return std::nullopt;
}

admission refuse(std::string reason) {
  return {.what = verdict::refuse, .reason = std::move(reason), .remarks = {}};
}

admission clash(std::string reason) {
  return {.what = verdict::clash, .reason = std::move(reason), .remarks = {}};
}

std::string_view text_of(membership who) {
  return who == membership::survivors ? "the survivors alone" : "the whole world";
}

/// Refusal or clash by a fact; otherwise `accept` with what is worth a remark.
admission compare_facts(const seating& table, const hello_message& guest) {
  admission out{.what = verdict::accept, .reason = {}, .remarks = {}};
  for (const fact& each : named_by_either(table.facts, guest.facts)) {
    const auto theirs = value_of(guest.facts, each.name);
    const auto ours = value_of(table.facts, each.name);
    switch (each.rule) {
      case fact_rule::equal:
        if (theirs != ours) {
          return clash(difference(table, guest, each.name));
        }
        break;
      case fact_rule::reported:
        if (theirs != ours) {
          out.remarks.push_back(difference(table, guest, each.name));
        }
        break;
      case fact_rule::distinct:
        if (const auto other = rank_with_same(table, guest, each.name)) {
          return clash(fmt::format("{} {} of rank {} is that of rank {} as well",
                                   each.name,
                                   theirs,
                                   guest.rank,
                                   *other));
        }
        break;
    }
  }
  return out;
}

}  // namespace

admission admit(const seating& table, const hello_message& guest) {
  if (guest.version != protocol_version) {
    return clash(fmt::format("protocol version differs: the guest speaks {}, rank {} speaks {}",
                             guest.version,
                             table.host,
                             protocol_version));
  }
  if (guest.world_size != table.world_size) {
    return refuse(fmt::format("world size differs: rank {} was given {}, rank {} was given {}",
                              guest.rank,
                              guest.world_size,
                              table.host,
                              table.world_size));
  }
  if (guest.rank < 0 || guest.rank == table.host || guest.rank >= table.world_size) {
    return refuse(fmt::format(
        "rank {} cannot join rank {} of a world of {}", guest.rank, table.host, table.world_size));
  }
  if (guest.who != table.who) {
    return refuse(fmt::format("rank {} meets {}, rank {} meets {}",
                              guest.rank,
                              text_of(guest.who),
                              table.host,
                              text_of(table.who)));
  }
  admission facts = compare_facts(table, guest);
  if (facts.what != verdict::accept) {
    return facts;
  }
  const auto& holder = table.seats[static_cast<std::size_t>(guest.rank)];
  if (!holder) {
    return facts;
  }
  if (holder->process == guest.process) {
    facts.what = verdict::replace;
    return facts;
  }
  facts.what = verdict::ask_holder;
  facts.reason = fmt::format("rank {} already taken", guest.rank);
  return facts;
}

}  // namespace spark_comm::rendezvous::detail
