// SPDX-License-Identifier: AGPL-3.0-only
#include "operation.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::app {
namespace {

// In the order of the enumeration.
constexpr std::array<operation_traits, 7> table = {{
    {.name = "all_reduce", .reduces = true, .has_in_place = true},
    {.name = "reduce", .reduces = true, .has_root = true, .has_in_place = true},
    {.name = "broadcast", .has_root = true, .has_in_place = true},
    {.name = "all_gather", .has_in_place = true, .gathers_output = true},
    {.name = "reduce_scatter", .reduces = true, .has_in_place = true, .scatters_input = true},
    {.name = "send_recv"},
    {.name = "all_to_all", .scatters_input = true, .gathers_output = true},
}};

}  // namespace

const operation_traits& traits_of(operation what) noexcept {
  return table[static_cast<std::size_t>(what)];
}

std::optional<operation> parse_operation(std::string_view name) noexcept {
  for (const operation what : all_operations) {
    if (traits_of(what).name == name) {
      return what;
    }
  }
  return std::nullopt;
}

std::string operation_names() {
  std::string names;
  for (const operation what : all_operations) {
    names += names.empty() ? "" : ", ";
    names += traits_of(what).name;
  }
  return names;
}

buffer_shape shape_of(operation what, int world_size, std::size_t count) noexcept {
  const operation_traits& traits = traits_of(what);
  const std::size_t blocks = count * static_cast<std::size_t>(world_size);
  return {.input = traits.scatters_input ? blocks : count,
          .output = traits.gathers_output ? blocks : count};
}

std::size_t count_for(operation what,
                      int world_size,
                      std::uint64_t size_bytes,
                      std::size_t element_bytes) noexcept {
  const std::size_t one = shape_of(what, world_size, 1).larger();
  return static_cast<std::size_t>(size_bytes / element_bytes / one);
}

in_place_offsets in_place_of(operation what, int rank, std::size_t count) noexcept {
  const operation_traits& traits = traits_of(what);
  const std::size_t own_block = static_cast<std::size_t>(rank) * count;
  return {.input = traits.gathers_output ? own_block : 0,
          .output = traits.scatters_input ? own_block : 0};
}

std::vector<result_segment> expected_result(operation what,
                                            const placement& where,
                                            std::size_t count) {
  const std::size_t own_block = static_cast<std::size_t>(where.rank) * count;
  switch (what) {
    case operation::all_reduce: return {{.source = std::nullopt, .first = 0, .count = count}};
    case operation::reduce:
      if (where.rank != where.root) {
        return {};
      }
      return {{.source = std::nullopt, .first = 0, .count = count}};
    case operation::broadcast: return {{.source = where.root, .first = 0, .count = count}};
    case operation::reduce_scatter:
      return {{.source = std::nullopt, .first = own_block, .count = count}};
    case operation::send_recv: {
      const int previous = (where.rank + where.world_size - 1) % where.world_size;
      return {{.source = previous, .first = 0, .count = count}};
    }
    case operation::all_gather:
    case operation::all_to_all: {
      std::vector<result_segment> blocks;
      for (int source = 0; source < where.world_size; ++source) {
        const std::size_t first = what == operation::all_to_all ? own_block : 0;
        blocks.push_back({.source = source, .first = first, .count = count});
      }
      return blocks;
    }
  }
  return {};
}

}  // namespace spark_comm::app
