// SPDX-License-Identifier: AGPL-3.0-only
#include "fault_script.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace spark_comm::host {
namespace {

using std::chrono::nanoseconds;

constexpr std::uint64_t most_count = 1'000'000'000;
constexpr std::uint64_t most_seconds = 86'400;

// One statement, word by word. The first thing that is wrong is kept, and nothing is read after it.
class statement {
 public:
  statement(std::string_view text, std::size_t line, std::size_t column)
      : text_(text), line_(line), first_column_(column) {
    skip_blanks();
  }

  [[nodiscard]] bool is_at_end() const noexcept { return at_ == text_.size(); }

  [[nodiscard]] bool is_wrong() const noexcept { return problem_.has_value(); }

  [[nodiscard]] const std::optional<script_problem>& problem() const noexcept { return problem_; }

  /// The next word; empty at the end.
  [[nodiscard]] std::string_view peek() const noexcept {
    return text_.substr(at_, std::min(text_.find_first_of(" \t\r", at_), text_.size()) - at_);
  }

  void skip() noexcept {
    at_ += peek().size();
    skip_blanks();
  }

  /// Steps over `word` where it is next.
  bool accept(std::string_view word) noexcept {
    if (is_wrong() || peek() != word) {
      return false;
    }
    skip();
    return true;
  }

  void refuse(std::string_view accepted) {
    if (!is_wrong()) {
      const std::string found =
          is_at_end() ? std::string{"the rule ends"} : fmt::format("'{}'", peek());
      problem_ = script_problem{
          line_, first_column_ + at_, fmt::format("{}; accepted: {}", found, accepted)};
    }
  }

  void expect(std::string_view word) {
    if (!accept(word)) {
      refuse(fmt::format("'{}'", word));
    }
  }

  /// A whole number of `least` to `most`.
  template <typename Number>
  Number number(Number least, Number most, std::string_view what) {
    const std::string_view word = peek();
    Number value{};
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (is_wrong() || failure != std::errc{} || end != word.data() + word.size() || value < least ||
        value > most) {
      refuse(fmt::format("{} from {} to {}", what, least, most));
      return {};
    }
    skip();
    return value;
  }

  /// A whole number with its unit, without a blank between them.
  nanoseconds time() {
    struct unit {
      std::string_view name;
      std::uint64_t in_second;
    };

    constexpr std::array<unit, 4> units{
        {{"ns", 1'000'000'000}, {"us", 1'000'000}, {"ms", 1'000}, {"s", 1}}};
    const std::string_view word = peek();
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    const std::string_view name{end, static_cast<std::size_t>(word.data() + word.size() - end)};
    const auto* const found = std::ranges::find(units, name, &unit::name);
    if (is_wrong() || failure != std::errc{} || found == units.end() ||
        value > most_seconds * found->in_second) {
      refuse(fmt::format("a whole number with ns, us, ms or s, of at most {}s", most_seconds));
      return {};
    }
    skip();
    return nanoseconds{static_cast<std::int64_t>(value * (1'000'000'000 / found->in_second))};
  }

 private:
  void skip_blanks() noexcept {
    at_ = std::min(text_.find_first_not_of(" \t\r", at_), text_.size());
  }

  std::string_view text_;
  std::size_t line_;
  std::size_t first_column_;
  std::size_t at_ = 0;
  std::optional<script_problem> problem_;
};

std::uint64_t read_count(statement& in) {
  return in.number<std::uint64_t>(1, most_count, "a number");
}

int read_code(statement& in) {
  return in.number<int>(0, std::numeric_limits<int>::max(), "a result code");
}

void read_rank(statement& in, fault_rule& rule) {
  in.expect("rank");
  if (in.accept("*")) {
    return;
  }
  rule.rank = in.number<int>(0, 1'000'000, "* or a rank");
}

void read_call_name(statement& in, fault_rule& rule) {
  const std::string_view name = in.peek();
  const auto is_known = [](std::string_view asked) {
    return std::ranges::find(fault_calls(), asked) != fault_calls().end();
  };
  if (name == "*" || name == "nccl*" || name == "cu*" || is_known(name)) {
    rule.call = name;
    in.skip();
    return;
  }
  const std::string versioned = fmt::format("{}_v2", name);
  in.refuse(is_known(versioned)
                ? versioned
                : "the full name of an nccl or cu call of the host runtime, nccl*, cu* or *");
}

// What a process does to itself, at whatever event.
bool read_process_action(statement& in, fault_rule& rule) {
  if (in.accept("kill")) {
    rule.action = fault_action::kill;
  } else if (in.accept("stop")) {
    rule.action = fault_action::stop;
  } else if (in.accept("freeze")) {
    rule.action = fault_action::freeze;
    rule.time = in.time();
  } else {
    return false;
  }
  return true;
}

void read_call_action(statement& in, fault_rule& rule) {
  if (read_process_action(in, rule)) {
    return;
  }
  if (in.accept("delay")) {
    rule.action = fault_action::delay;
    rule.time = in.time();
  } else if (in.accept("return")) {
    rule.action = fault_action::give_back;
    rule.code = read_code(in);
  } else if (in.accept("hang")) {
    rule.action = fault_action::hang;
  } else if (in.peek() == "in_progress" && !is_gathered(rule.call)) {
    in.refuse(fmt::format(
        "another action, since {} leaves no communicator in progress: delay, return, kill, stop, "
        "freeze, hang",
        rule.call));
  } else if (in.accept("in_progress")) {
    rule.action = fault_action::in_progress;
    rule.polls = read_count(in);
    in.expect("then");
    rule.code = read_code(in);
  } else {
    in.refuse("delay T, return CODE, kill, stop, freeze T, hang, in_progress K then CODE");
  }
}

void read_call(statement& in, fault_rule& rule) {
  read_call_name(in, rule);
  if (in.accept("nth")) {
    rule.occasion = fault_occasion::nth;
    rule.count = read_count(in);
  } else if (in.accept("from")) {
    rule.occasion = fault_occasion::from;
    rule.count = read_count(in);
  }
  read_call_action(in, rule);
}

void read_operations(statement& in, fault_rule& rule) {
  rule.event = fault_event::operations;
  rule.occasion = fault_occasion::nth;
  rule.count = read_count(in);
  in.expect("ops");
  if (read_process_action(in, rule)) {
    return;
  }
  if (in.accept("async_error")) {
    rule.action = fault_action::async_error;
    rule.code = in.number<int>(1, std::numeric_limits<int>::max(), "a result code");
  } else if (in.accept("corrupt")) {
    rule.action = fault_action::corrupt;
  } else {
    in.refuse("async_error CODE, corrupt, kill, stop, freeze T");
  }
}

fault_rule read_rule(statement& in) {
  fault_rule rule;
  read_rank(in, rule);
  if (in.accept("call")) {
    read_call(in, rule);
  } else if (in.accept("after")) {
    read_operations(in, rule);
  } else if (in.accept("abort")) {
    rule.call = "ncclCommAbort";
    rule.action = fault_action::hang;
    in.expect("hang");
  } else if (in.peek() == "freeze") {
    rule.event = fault_event::operations;
    rule.occasion = fault_occasion::nth;
    rule.count = 1;
    read_process_action(in, rule);
  } else {
    in.refuse("call, after, abort, freeze");
  }
  if (!in.is_at_end()) {
    in.refuse("the end of the rule");
  }
  return rule;
}

}  // namespace

parsed_script parse_fault_script(std::string_view text) {
  parsed_script script;
  std::size_t line = 1;
  std::size_t line_begin = 0;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find_first_of("\n;#", begin), text.size());
    statement in{text.substr(begin, end - begin), line, begin - line_begin + 1};
    if (!in.is_at_end()) {
      fault_rule rule = read_rule(in);
      if (in.is_wrong()) {
        return {.rules = {}, .problem = in.problem()};
      }
      script.rules.push_back(std::move(rule));
    }
    std::size_t stop = end;
    if (stop < text.size() && text[stop] == '#') {
      stop = std::min(text.find('\n', stop), text.size());
    }
    begin = stop + 1;
    if (stop < text.size() && text[stop] == '\n') {
      ++line;
      line_begin = begin;
    }
  }
  return script;
}

std::string describe(const script_problem& problem) {
  return fmt::format("line {}, column {}: {}", problem.line, problem.column, problem.text);
}

}  // namespace spark_comm::host
