// SPDX-License-Identifier: AGPL-3.0-only
#include "option_values.hpp"

#include "bench_options.hpp"
#include "operation.hpp"
#include "quantity.hpp"

#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/core/time.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spark_comm::app {
namespace {

constexpr std::string_view size_examples = "8, 4K, 1M, 2G (K = 1024)";
constexpr std::string_view duration_examples = "30s, 500ms, 2m";

template <typename Values, typename Name>
std::string listed(const Values& all, Name name) {
  std::string names;
  for (const auto one : all) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name(one));
  }
  return names;
}

std::uint64_t size_value(const std::string& name, const std::string& given) {
  const std::optional<std::uint64_t> size = parse_size(given);
  if (!size) {
    throw refused(name, given, std::string{size_examples});
  }
  return *size;
}

}  // namespace

name_table<operation> operation_table() {
  return {.parse = parse_operation,
          .name = [](operation what) { return traits_of(what).name; },
          .accepted = operation_names()};
}

name_table<data_type> data_type_names() {
  const auto name = [](data_type dtype) { return name_of(dtype); };
  return {.parse = parse_data_type, .name = name, .accepted = listed(all_data_types, name)};
}

name_table<reduce_op> reduce_op_names() {
  const auto name = [](reduce_op op) { return name_of(op); };
  return {.parse = parse_reduce_op, .name = name, .accepted = listed(all_reduce_ops, name)};
}

name_table<runtime_kind> runtime_names() {
  using entry = std::pair<std::string_view, runtime_kind>;
  static constexpr std::array<entry, 4> spellings = {{{"auto", runtime_kind::automatic},
                                                      {"nvidia", runtime_kind::nvidia},
                                                      {"host", runtime_kind::host},
                                                      {"automatic", runtime_kind::automatic}}};
  const auto parse = [](std::string_view text) -> std::optional<runtime_kind> {
    for (const auto& [name, kind] : spellings) {
      if (name == text) {
        return kind;
      }
    }
    return std::nullopt;
  };
  const auto name = [](runtime_kind kind) {
    return std::ranges::find(spellings, kind, &entry::second)->first;
  };
  return {.parse = parse, .name = name, .accepted = "auto, nvidia, host"};
}

name_table<timing_mode> timing_mode_names() {
  static constexpr std::array modes = {
      timing_mode::synchronized, timing_mode::pipelined, timing_mode::graph};
  const auto name = [](timing_mode mode) { return name_of(mode); };
  const auto parse = [](std::string_view text) -> std::optional<timing_mode> {
    for (const timing_mode mode : modes) {
      if (name_of(mode) == text) {
        return mode;
      }
    }
    return std::nullopt;
  };
  return {.parse = parse, .name = name, .accepted = listed(modes, name)};
}

CLI::ValidationError refused(const std::string& option,
                             const std::string& value,
                             const std::string& accepted) {
  return CLI::ValidationError{fmt::format("{} {}: accepted are {}", option, value, accepted)};
}

void add_size(CLI::App& verb,
              const std::string& name,
              std::uint64_t& into,
              const std::string& help) {
  const auto take = [name, &into](const CLI::results_t& given) {
    into = size_value(name, given.front());
    return true;
  };
  verb.add_option(name, take, help)->type_name("SIZE")->default_str(fmt::to_string(into));
}

void add_size(CLI::App& verb,
              const std::string& name,
              std::optional<std::uint64_t>& into,
              const std::string& help) {
  const auto take = [name, &into](const CLI::results_t& given) {
    into = size_value(name, given.front());
    return true;
  };
  verb.add_option(name, take, help)->type_name("SIZE");
}

void add_duration(CLI::App& verb,
                  const std::string& name,
                  duration& into,
                  const std::string& help) {
  const auto take = [name, &into](const CLI::results_t& given) {
    const std::optional<duration> span = parse_duration(given.front());
    if (!span) {
      throw refused(name, given.front(), std::string{duration_examples});
    }
    into = *span;
    return true;
  };
  std::string shown = duration_text(into);
  std::erase(shown, ' ');
  verb.add_option(name, take, help)->type_name("SPAN")->default_str(shown);
}

std::string verb_names(const CLI::App& root) {
  return listed(root.get_subcommands([](const CLI::App*) { return true; }),
                [](const CLI::App* verb) { return verb->get_name(); });
}

std::string option_names(const CLI::App& verb) {
  std::string names;
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_positional()) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", option->get_name());
    }
  }
  return names;
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace spark_comm::app
