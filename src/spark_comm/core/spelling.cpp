// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/spelling.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace spark_comm {

std::size_t spelling_distance(std::string_view left, std::string_view right) {
  // Three rows of the table of distances between beginnings: the one before last is for swaps.
  std::vector<std::size_t> before_last(right.size() + 1);
  std::vector<std::size_t> last(right.size() + 1);
  std::vector<std::size_t> row(right.size() + 1);
  for (std::size_t j = 0; j <= right.size(); ++j) {
    last[j] = j;
  }
  for (std::size_t i = 1; i <= left.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool is_swap =
          i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (is_swap) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[right.size()];
}

std::optional<std::string_view> nearest_word(std::string_view word,
                                             std::span<const std::string_view> known,
                                             std::size_t limit) {
  std::optional<std::string_view> nearest;
  std::size_t best = limit + 1;
  for (const std::string_view candidate : known) {
    const std::size_t longer = std::max(word.size(), candidate.size());
    const std::size_t shorter = std::min(word.size(), candidate.size());
    if (longer - shorter >= best) {
      continue;  // they differ by more than that in length alone
    }
    const std::size_t distance = spelling_distance(word, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace spark_comm
