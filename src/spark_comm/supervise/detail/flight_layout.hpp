// SPDX-License-Identifier: AGPL-3.0-only
// The bytes of a flight record file: one header page, then a ring of entries of sixteen words.
// Little endian, like every machine this runs on. A change of layout needs a new version.
#pragma once

#include <spark_comm/core/error.hpp>
#include <spark_comm/supervise/detail/mixing.hpp>
#include <spark_comm/supervise/flight_entry.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace spark_comm::detail {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::array<char, 8> flight_magic = {'S', 'P', 'K', 'F', 'L', 'G', 'H', 'T'};
inline constexpr std::uint32_t flight_version = 1;
inline constexpr std::uint32_t flight_header_bytes = 4096;
inline constexpr std::uint32_t flight_entry_bytes = 128;

/// Written once, before the file gets its name; only the words after `check` change later.
struct flight_header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint32_t entry_bytes;
  std::uint32_t capacity;
  std::int32_t rank;
  std::int32_t world_size;
  std::uint64_t process;
  std::uint64_t communicator;
  std::uint64_t generation;
  std::int64_t wall_base_ns;    ///< The wall clock (since 1970) when the steady clock stood at ...
  std::int64_t steady_base_ns;  ///< ... this.
  std::array<char, 128> name;   ///< Zero terminated.
  std::array<char, 64> host;    ///< Zero terminated.
  std::uint64_t check;          ///< Over all bytes before it.
  std::uint64_t ended;          ///< 0 while the rank works; else how it ended.
  std::uint64_t written;        ///< Entries written since the start.
};

static_assert(std::is_trivially_copyable_v<flight_header>);
static_assert(sizeof(flight_header) == 288 && sizeof(flight_header) <= flight_header_bytes);

/// The words of an entry. Up to `check` they belong to the thread that submits; the last three to
/// the watchdog, tagged with the lap of the ring, so that one meant for an overwritten entry is
/// told apart.
// NOLINTNEXTLINE(performance-enum-size): an index
enum class flight_word : std::size_t {
  commit,  ///< 0 while the entry is being written; index + 1 when it is whole.
  sequence,
  ordinal,
  count_elements,
  stream,
  submitted_ns,  ///< Steady clock.
  kinds,         ///< From the low byte: kind, dtype, op, path; the upper half is root or peer.
  marks,         ///< Lower half: flags; upper half: generation.
  communicator,
  signature,
  check,     ///< Over the words between `commit` and here, and the index.
  started,   ///< Tag and nanoseconds since the submission.
  finished,  ///< The same.
  outcome,   ///< Tag, error code, native domain and number.
  unused_0,
  unused_1,
};

inline constexpr std::size_t flight_words = flight_entry_bytes / sizeof(std::uint64_t);
static_assert(static_cast<std::size_t>(flight_word::unused_1) + 1 == flight_words);

using flight_words_array = std::array<std::uint64_t, flight_words>;

[[nodiscard]] constexpr std::uint64_t& at(flight_words_array& words, flight_word which) noexcept {
  return words[static_cast<std::size_t>(which)];
}

[[nodiscard]] constexpr std::uint64_t at(const flight_words_array& words,
                                         flight_word which) noexcept {
  return words[static_cast<std::size_t>(which)];
}

/// Never 0, so that an untouched word carries no tag.
[[nodiscard]] constexpr std::uint64_t lap_tag(std::uint64_t index,
                                              std::uint64_t capacity) noexcept {
  return ((index / capacity) % 0xffffU) + 1;
}

inline constexpr unsigned tag_shift = 48;
inline constexpr std::uint64_t below_tag = (std::uint64_t{1} << tag_shift) - 1;

[[nodiscard]] constexpr std::uint64_t entry_check(const flight_words_array& words) noexcept {
  // Two independent chains halve the latency of the multiplications.
  std::uint64_t even = at(words, flight_word::commit);
  std::uint64_t odd = 0;
  for (auto each = static_cast<std::size_t>(flight_word::sequence);
       each < static_cast<std::size_t>(flight_word::check);
       each += 2) {
    odd = mix(odd, words[each]);
    if (each + 1 < static_cast<std::size_t>(flight_word::check)) {
      even = mix(even, words[each + 1]);
    }
  }
  return mix(even, odd);
}

[[nodiscard]] inline std::uint64_t header_check(const flight_header& header) noexcept {
  const auto bytes = std::bit_cast<std::array<unsigned char, sizeof(flight_header)>>(header);
  std::uint64_t state = 0;
  for (std::size_t each = 0; each < offsetof(flight_header, check); ++each) {
    state = mix(state, bytes[each]);
  }
  return state;
}

/// What the watchdog's words hold besides their tag.
inline constexpr std::uint64_t outcome_seen = std::uint64_t{1} << 47U;

[[nodiscard]] constexpr std::uint64_t pack_outcome(std::optional<errc> code,
                                                   native_domain domain,
                                                   std::int64_t native_number) noexcept {
  return outcome_seen | (code ? static_cast<std::uint64_t>(*code) : 0) << 36U |
         static_cast<std::uint64_t>(domain) << 32U |
         static_cast<std::uint32_t>(static_cast<std::int32_t>(native_number));
}

/// The words that the submitting thread writes; `commit` is set, the watchdog's are zero.
[[nodiscard]] constexpr flight_words_array pack(const operation_record& record,
                                                std::uint64_t index,
                                                std::int64_t submitted_ns,
                                                std::uint64_t signature) noexcept {
  flight_words_array words{};
  at(words, flight_word::commit) = index + 1;
  at(words, flight_word::sequence) = record.sequence;
  at(words, flight_word::ordinal) = record.ordinal;
  at(words, flight_word::count_elements) = record.count_elements;
  at(words, flight_word::stream) = record.stream;
  at(words, flight_word::submitted_ns) = static_cast<std::uint64_t>(submitted_ns);
  at(words, flight_word::kinds) =
      static_cast<std::uint64_t>(record.kind) | static_cast<std::uint64_t>(record.dtype) << 8U |
      static_cast<std::uint64_t>(record.op) << 16U |
      static_cast<std::uint64_t>(record.path) << 24U |
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(record.root_or_peer)) << 32U;
  at(words, flight_word::marks) = record.flags | static_cast<std::uint64_t>(record.generation)
                                                     << 32U;
  at(words, flight_word::communicator) = record.communicator;
  at(words, flight_word::signature) = signature;
  at(words, flight_word::check) = entry_check(words);
  return words;
}

[[nodiscard]] constexpr operation_record unpack_record(const flight_words_array& words) noexcept {
  const std::uint64_t kinds = at(words, flight_word::kinds);
  const std::uint64_t marks = at(words, flight_word::marks);
  return {
      .sequence = at(words, flight_word::sequence),
      .ordinal = at(words, flight_word::ordinal),
      .count_elements = at(words, flight_word::count_elements),
      .stream = at(words, flight_word::stream),
      .communicator = at(words, flight_word::communicator),
      .generation = static_cast<std::uint32_t>(marks >> 32U),
      .root_or_peer = static_cast<std::int32_t>(kinds >> 32U),
      .kind = static_cast<operation_kind>(kinds & 0xffU),
      .dtype = static_cast<data_type>(kinds >> 8U & 0xffU),
      .op = static_cast<reduce_op>(kinds >> 16U & 0xffU),
      .path = static_cast<path_kind>(kinds >> 24U & 0xffU),
      .flags = static_cast<std::uint32_t>(marks),
  };
}

/// A whole entry of a ring of `capacity`; none when its check word says that it is not whole.
[[nodiscard]] constexpr std::optional<flight_entry> unpack(const flight_words_array& words,
                                                           std::uint64_t capacity) noexcept {
  if (at(words, flight_word::commit) == 0 || at(words, flight_word::check) != entry_check(words)) {
    return std::nullopt;
  }
  flight_entry entry;
  entry.index = at(words, flight_word::commit) - 1;
  entry.record = unpack_record(words);
  entry.submitted_ns = static_cast<std::int64_t>(at(words, flight_word::submitted_ns));
  entry.signature = at(words, flight_word::signature);
  const auto seen = [&](flight_word which) -> std::optional<std::uint64_t> {
    const std::uint64_t word = at(words, which);
    const bool is_ours = word >> tag_shift == lap_tag(entry.index, capacity);
    return is_ours ? std::optional{word & below_tag} : std::nullopt;
  };
  const auto when = [&](flight_word which) -> std::optional<std::int64_t> {
    const auto after = seen(which);
    const auto base = at(words, flight_word::submitted_ns);  // unsigned, as damage may overflow it
    return after ? std::optional{static_cast<std::int64_t>(base + *after)} : std::nullopt;
  };
  entry.started_ns = when(flight_word::started);
  entry.finished_ns = when(flight_word::finished);
  if (const auto outcome = seen(flight_word::outcome)) {
    const auto code = *outcome >> 36U & 0xffU;
    entry.stage = code == 0 ? flight_stage::completed : flight_stage::failed;
    entry.code = code == 0 ? std::nullopt : std::optional{static_cast<errc>(code)};
    entry.domain = static_cast<native_domain>(*outcome >> 32U & 0xfU);
    entry.native_number = static_cast<std::int32_t>(*outcome & 0xffffffffU);
  } else if (entry.started_ns) {
    entry.stage = flight_stage::started;
  }
  return entry;
}

}  // namespace spark_comm::detail
