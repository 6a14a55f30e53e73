// SPDX-License-Identifier: AGPL-3.0-only
// Drives a fuzz target without clang: inputs made from the target's seeds by a random generator,
// the same ones for the same number. Knows nothing of coverage; libFuzzer does.
#include "fuzz/fuzz_target.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

/// Makes the inputs, in an order that depends on `seed` alone.
class mutator {
 public:
  mutator(std::uint64_t seed, std::vector<std::string> seeds)
      : random_(seed), seeds_(std::move(seeds)) {}

  std::string next() {
    std::string input = any_seed();
    for (std::size_t edits = below(6); edits > 0; --edits) {
      edit(input);
    }
    return input;
  }

 private:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_()) % limit; }

  const std::string& any_seed() { return seeds_[below(seeds_.size())]; }

  void edit(std::string& input) {
    const std::size_t at = below(input.size() + 1);
    const std::size_t length = std::min(input.size() - at, 1 + below(16));
    switch (below(7)) {
      case 0: input.insert(at, 1, static_cast<char>(below(256))); break;
      case 1: input.erase(at, length); break;
      case 2: input.insert(at, input.substr(at, length)); break;
      case 3: input.resize(at); break;
      case 4: {  // a piece of another input
        const std::string& other = any_seed();
        const std::size_t from = below(other.size() + 1);
        input.insert(at, other.substr(from, 1 + below(64)));
        break;
      }
      case 5: put_number(input, at); break;
      default:
        if (at < input.size()) {
          input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        }
    }
  }

  /// Numbers at which limits lie, in the width and order that our formats have.
  void put_number(std::string& input, std::size_t at) {
    constexpr std::array<std::uint64_t, 8> numbers = {
        0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, ~std::uint64_t{0}};
    const std::uint64_t number = numbers.at(below(numbers.size()));
    const std::size_t width = std::min(input.size() - at, std::size_t{1} << below(4));
    for (std::size_t i = 0; i < width; ++i) {
      input[at + i] = static_cast<char>(number >> (8 * i));
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> seeds_;
};

std::uint64_t current = 0;
std::uint64_t current_seed = 0;

/// Says how the finding is had again. Calls only what a signal handler may.
void tell_finding(int number) {
  std::array<char, 128> text{};
  char* end = text.data();
  const auto put = [&end](std::string_view words) {
    std::memcpy(end, words.data(), words.size());
    end += words.size();
  };
  put("a finding: run with --seed ");
  end = std::to_chars(end, end + 20, current_seed).ptr;
  put(" --only ");
  end = std::to_chars(end, end + 20, current).ptr;
  put("\n");
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, text.data(), static_cast<std::size_t>(end - text.data()));
  std::signal(number, SIG_DFL);
  std::raise(number);
}

std::uint64_t number_of(const char* text) {
  std::uint64_t number = 0;
  std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

int main(int count, char** arguments) {
  std::uint64_t seconds = 1;
  std::uint64_t only = std::numeric_limits<std::uint64_t>::max();
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = arguments[i];
    std::uint64_t& value = name == "--seed" ? current_seed : name == "--only" ? only : seconds;
    value = number_of(arguments[i + 1]);
  }
  for (const int number : {SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) {
    std::signal(number, tell_finding);
  }
  const bool is_one = only != std::numeric_limits<std::uint64_t>::max();
  mutator inputs{current_seed, fuzz_seeds()};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{seconds};
  for (current = 0; is_one ? current <= only : std::chrono::steady_clock::now() < end; ++current) {
    const std::string input = inputs.next();
    if (!is_one || current == only) {
      // A copy of exactly its size, so that a sanitizer sees what reads beyond it.
      const std::vector<std::uint8_t> bytes(input.begin(), input.end());
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
  }
  std::printf("%llu inputs, no finding\n", static_cast<unsigned long long>(current));
  return current > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
