// SPDX-License-Identifier: AGPL-3.0-only
// Options whose values are names, sizes or spans, each refused with a line that says what is
// accepted.
#pragma once

#include "bench_options.hpp"
#include "operation.hpp"

#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/core/time.hpp>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::app {

/// How one enumeration is spelt.
template <typename Value>
struct name_table {
  std::function<std::optional<Value>(std::string_view)> parse;
  std::function<std::string_view(Value)> name;
  std::string accepted;  ///< "sum, prod, ...".
};

[[nodiscard]] name_table<operation> operation_table();
[[nodiscard]] name_table<data_type> data_type_names();
[[nodiscard]] name_table<reduce_op> reduce_op_names();
[[nodiscard]] name_table<runtime_kind> runtime_names();
[[nodiscard]] name_table<timing_mode> timing_mode_names();

/// The error for a value that is not accepted.
[[nodiscard]] CLI::ValidationError refused(const std::string& option,
                                           const std::string& value,
                                           const std::string& accepted);

/// An option that takes one of the names of `table`; shows the value of `into` as its default.
template <typename Value>
CLI::Option* add_named(CLI::App& verb,
                       const std::string& name,
                       Value& into,
                       const name_table<Value>& table,
                       const std::string& help) {
  const auto take = [name, &into, table](const CLI::results_t& given) {
    const std::optional<Value> value = table.parse(given.front());
    if (!value) {
      throw refused(name, given.front(), table.accepted);
    }
    into = *value;
    return true;
  };
  CLI::Option* const option = verb.add_option(name, take, help + ": " + table.accepted);
  if (name.starts_with("--")) {
    option->type_name("NAME")->default_str(std::string{table.name(into)});
  }
  return option;
}

void add_size(CLI::App& verb,
              const std::string& name,
              std::uint64_t& into,
              const std::string& help);
void add_size(CLI::App& verb,
              const std::string& name,
              std::optional<std::uint64_t>& into,
              const std::string& help);
void add_duration(CLI::App& verb, const std::string& name, duration& into, const std::string& help);

/// "bench, check, ...".
[[nodiscard]] std::string verb_names(const CLI::App& root);

/// "--min, --max, ..." of a verb.
[[nodiscard]] std::string option_names(const CLI::App& verb);

/// The text with its line breaks replaced.
[[nodiscard]] std::string one_line(std::string text);

}  // namespace spark_comm::app
