// SPDX-License-Identifier: AGPL-3.0-only
// Which known word did somebody mean? For names that nothing would read otherwise.
#pragma once

#include <spark_comm/core/export.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace spark_comm {

/// How many letters to insert, drop, replace or swap with a neighbour until `left` is `right`.
/// Cost: the product of the lengths.
[[nodiscard]] SPARK_COMM_API std::size_t spelling_distance(std::string_view left,
                                                           std::string_view right);

/// The known word that is nearest to `word`, the first of equals; none within `limit`.
[[nodiscard]] SPARK_COMM_API std::optional<std::string_view> nearest_word(
    std::string_view word, std::span<const std::string_view> known, std::size_t limit);

}  // namespace spark_comm
