// SPDX-License-Identifier: AGPL-3.0-only
// The operations that the tool can run, and what is different about each: one table, from which
// buffers, bandwidths, checks and texts follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::app {

/// What `bench` and `check` can run.
enum class operation : std::uint8_t {
  all_reduce,      ///< Every rank gets the reduction.
  reduce,          ///< The root gets the reduction.
  broadcast,       ///< Every rank gets what the root has.
  all_gather,      ///< Every rank gets all blocks.
  reduce_scatter,  ///< Every rank gets its block of the reduction.
  send_recv,       ///< A ring: each rank sends to the next and receives from the one before.
  all_to_all,      ///< Every rank gives every rank a block of its own.
};

inline constexpr operation all_operations[] = {
    operation::all_reduce,
    operation::reduce,
    operation::broadcast,
    operation::all_gather,
    operation::reduce_scatter,
    operation::send_recv,
    operation::all_to_all,
};

/// What an operation needs to be told, and whether its result may land on its input.
struct operation_traits {
  std::string_view name;
  bool reduces = false;         ///< Takes a reduce operation.
  bool has_root = false;        ///< Takes a root.
  bool has_in_place = false;    ///< Can run in place.
  bool scatters_input = false;  ///< The input holds a block for each rank.
  bool gathers_output = false;  ///< The output holds a block from each rank.
};

[[nodiscard]] const operation_traits& traits_of(operation what) noexcept;
[[nodiscard]] std::optional<operation> parse_operation(std::string_view name) noexcept;

/// "all_reduce, reduce, ..." for messages.
[[nodiscard]] std::string operation_names();

/// Elements in one rank's buffers for `count` elements a block.
struct buffer_shape {
  std::size_t input = 0;
  std::size_t output = 0;

  /// The larger buffer: what the size column shows, as in nccl-tests.
  [[nodiscard]] std::size_t larger() const noexcept { return input > output ? input : output; }
};

[[nodiscard]] buffer_shape shape_of(operation what, int world_size, std::size_t count) noexcept;

/// Elements a block so that the larger buffer holds at most `size_bytes`.
[[nodiscard]] std::size_t count_for(operation what,
                                    int world_size,
                                    std::uint64_t size_bytes,
                                    std::size_t element_bytes) noexcept;

/// For an operation in place: where input and output begin inside the larger buffer, in elements.
struct in_place_offsets {
  std::size_t input = 0;
  std::size_t output = 0;
};

[[nodiscard]] in_place_offsets in_place_of(operation what, int rank, std::size_t count) noexcept;

/// A piece of the result: `count` elements that come from element `first` on of one rank's input,
/// or (without a source) from the reduction over all ranks' inputs.
struct result_segment {
  std::optional<int> source;
  std::size_t first = 0;
  std::size_t count = 0;
};

/// A rank's place in a run.
struct placement {
  int rank = 0;
  int world_size = 1;
  int root = 0;
};

/// What a rank's output must hold, from its beginning; empty when the rank gets no result.
[[nodiscard]] std::vector<result_segment> expected_result(operation what,
                                                          const placement& where,
                                                          std::size_t count);

}  // namespace spark_comm::app
