// SPDX-License-Identifier: AGPL-3.0-only
// The text form of a path table.
#include <spark_comm/core/error.hpp>
#include <spark_comm/kernels/peer_segment.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace spark_comm {
namespace {

constexpr std::string_view first_line = "spark-comm-paths 1";

constexpr operation_kind operations[] = {operation_kind::all_reduce,
                                         operation_kind::all_reduce_rms_norm};

std::string_view name_of(world_reach reach) noexcept {
  switch (reach) {
    case world_reach::any:  return "*";
    case world_reach::near: return "near";
    case world_reach::far:  return "far";
  }
  return "unknown";
}

constexpr world_reach reaches[] = {world_reach::any, world_reach::near, world_reach::far};

/// Reads one text; knows where it is, for messages.
class parser {
 public:
  parser(std::string_view text, std::string_view origin) : rest_(text), origin_(origin) {}

  std::vector<path_rule> run() {
    std::vector<path_rule> rules;
    bool has_begun = false;
    while (!rest_.empty()) {
      const std::vector<std::string_view> words = next_line();
      if (words.empty()) {
        continue;
      }
      if (has_begun) {
        rules.push_back(rule(words));
      } else {
        require_head(words);
        has_begun = true;
      }
    }
    if (!has_begun) {
      fail(fmt::format("the first line must be '{}'", first_line));
    }
    return rules;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw error{errc::invalid_argument, fmt::format("{}:{}: {}", origin_, line_, message)};
  }

  std::vector<std::string_view> next_line() {
    ++line_;
    const std::size_t end = rest_.find('\n');
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    line = line.substr(0, line.find('#'));
    constexpr std::string_view blanks = " \t\r";
    std::vector<std::string_view> words;
    for (std::size_t at = line.find_first_not_of(blanks); at != std::string_view::npos;
         at = line.find_first_not_of(blanks)) {
      line.remove_prefix(at);
      const std::size_t length = std::min(line.find_first_of(blanks), line.size());
      words.push_back(line.substr(0, length));
      line.remove_prefix(length);
    }
    return words;
  }

  void require_head(const std::vector<std::string_view>& words) const {
    if (fmt::format("{}", fmt::join(words, " ")) != first_line) {
      fail(fmt::format(
          "'{}' is not '{}', the form that this version reads", fmt::join(words, " "), first_line));
    }
  }

  template <typename Values>
  [[nodiscard]] auto named(std::string_view word, const Values& values) const {
    std::string accepted;
    for (const auto value : values) {
      if (name_of(value) == word) {
        return value;
      }
      accepted += fmt::format("{}{}", accepted.empty() ? "" : ", ", name_of(value));
    }
    fail(fmt::format("'{}' is none of: {}", word, accepted));
  }

  [[nodiscard]] std::uint64_t number(std::string_view word, std::uint64_t most) const {
    std::uint64_t value = 0;
    const auto [stop, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc{} || stop != word.data() + word.size() || value > most) {
      fail(fmt::format("'{}' is neither * nor a number up to {}", word, most));
    }
    return value;
  }

  [[nodiscard]] path_rule rule(const std::vector<std::string_view>& words) const {
    if (words.size() != 5) {
      fail(fmt::format("{} words; a rule has 5: operation, world, reach, bytes, path",
                       words.size()));
    }
    path_rule made{.operation = named(words[0], operations),
                   .reach = named(words[2], reaches),
                   .path = named(words[4], all_path_kinds)};
    if (words[1] != "*") {
      made.world_size =
          static_cast<int>(number(words[1], std::numeric_limits<std::int32_t>::max()));
    }
    if (words[3] != "*") {
      made.max_bytes = number(words[3], path_rule::any_size);
    }
    return made;
  }

  std::string_view rest_;
  std::string_view origin_;
  int line_ = 0;
};

}  // namespace

path_table path_table::parse(std::string_view text, std::string_view origin) {
  return path_table{parser{text, origin}.run()};
}

path_table path_table::load(const std::string& file) {
  std::ifstream in{file, std::ios::binary};
  if (!in) {
    throw_errno("open", fmt::format("the path table {} cannot be read", file), errno);
  }
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  return parse(text, file);
}

std::string path_table::text() const {
  std::string text = fmt::format("{}\n", first_line);
  for (const path_rule& rule : rules_) {
    text +=
        fmt::format("{} {} {} {} {}\n",
                    name_of(rule.operation),
                    rule.world_size == path_rule::any_world ? "*" : fmt::to_string(rule.world_size),
                    name_of(rule.reach),
                    rule.max_bytes == path_rule::any_size ? "*" : fmt::to_string(rule.max_bytes),
                    name_of(rule.path));
  }
  return text;
}

}  // namespace spark_comm
