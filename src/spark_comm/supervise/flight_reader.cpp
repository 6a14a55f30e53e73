// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/supervise/detail/flight_layout.hpp>
#include <spark_comm/supervise/flight_entry.hpp>
#include <spark_comm/supervise/flight_reader.hpp>
#include <spark_comm/supervise/flight_record.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm {
namespace {

using detail::flight_header;
using detail::flight_word;
using detail::flight_words_array;

constexpr std::size_t largest_file_bytes =
    detail::flight_header_bytes + (std::size_t{1} << 20U) * detail::flight_entry_bytes;

template <std::size_t Size>
std::string text_of(const std::array<char, Size>& field) {
  return {field.begin(), std::ranges::find(field, '\0')};
}

std::optional<flight_end> end_of(std::uint64_t number) noexcept {
  const bool is_known = number >= static_cast<std::uint64_t>(flight_end::closed) &&
                        number <= static_cast<std::uint64_t>(flight_end::aborted);
  return is_known ? std::optional{static_cast<flight_end>(number)} : std::nullopt;
}

/// None: this is no flight record of ours, and the reason is among the problems.
std::optional<flight_header> parse_header(std::span<const std::byte> bytes, flight_log& log) {
  if (bytes.size() < sizeof(flight_header)) {
    log.problems.push_back(
        fmt::format("too short for a header: {} of {} bytes", bytes.size(), sizeof(flight_header)));
    return std::nullopt;
  }
  flight_header header{};
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != detail::flight_magic) {
    log.problems.emplace_back("not a flight record: it does not begin with its mark");
    return std::nullopt;
  }
  if (header.version != detail::flight_version) {
    log.problems.push_back(fmt::format("layout version {}, this program reads version {}",
                                       header.version,
                                       detail::flight_version));
    return std::nullopt;
  }
  return header;
}

void take_header(const flight_header& header, flight_log& log) {
  log.is_identified = header.check == detail::header_check(header) &&
                      header.header_bytes == detail::flight_header_bytes &&
                      header.entry_bytes == detail::flight_entry_bytes;
  if (!log.is_identified) {
    log.problems.emplace_back("the header is damaged; whose record this is cannot be relied on");
  }
  log.who = {.name = text_of(header.name),
             .rank = header.rank,
             .world_size = header.world_size,
             .communicator = header.communicator,
             .generation = static_cast<std::uint32_t>(header.generation)};
  log.host = text_of(header.host);
  log.process = header.process;
  log.wall_base_ns = header.wall_base_ns;
  log.steady_base_ns = header.steady_base_ns;
  log.written = header.written;
  log.end = end_of(header.ended);
  if (header.ended != 0 && !log.end) {
    log.problems.push_back(fmt::format("unknown kind of end {}", header.ended));
  }
}

void check_length(const flight_header& header, std::size_t length, flight_log& log) {
  const std::size_t expected =
      detail::flight_header_bytes + std::size_t{header.capacity} * detail::flight_entry_bytes;
  if (log.is_identified && length != expected) {
    log.problems.push_back(fmt::format("{} bytes long, {} were written", length, expected));
  }
}

void take_entry(const flight_words_array& words,
                std::size_t slot,
                std::size_t capacity,
                flight_log& log) {
  const auto is_zero = [](std::uint64_t word) { return word == 0; };
  if (std::ranges::all_of(words, is_zero)) {
    return;  // never used
  }
  const std::uint64_t commit = at(words, flight_word::commit);
  if (commit == 0) {
    log.problems.push_back(fmt::format("slot {}: the process ended while writing it", slot));
    return;
  }
  const auto entry = detail::unpack(words, capacity);
  if (!entry || entry->index % capacity != slot) {
    log.problems.push_back(fmt::format("slot {}: damaged", slot));
    return;
  }
  if (name_of(entry->record.kind) == "unknown") {
    log.problems.push_back(fmt::format(
        "slot {}: unknown kind of operation {}", slot, static_cast<int>(entry->record.kind)));
  }
  log.entries.push_back(*entry);
}

void find_gaps(flight_log& log) {
  std::ranges::sort(log.entries, {}, &flight_entry::index);
  for (std::size_t each = 1; each < log.entries.size(); ++each) {
    const std::uint64_t before = log.entries[each - 1].index;
    const std::uint64_t here = log.entries[each].index;
    if (here != before + 1) {
      log.problems.push_back(fmt::format("operations {} to {} are missing", before + 1, here - 1));
    }
  }
}

struct file_closer {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

std::vector<std::byte> read_whole(const std::string& path) {
  // Read, not mapped: a file cut short while it is read must not raise SIGBUS.
  const std::unique_ptr<std::FILE, file_closer> file{std::fopen(path.c_str(), "rbe")};
  if (!file) {
    throw_errno("fopen", fmt::format("cannot open '{}'", path), errno);
  }
  std::vector<std::byte> bytes;
  std::array<std::byte, 65536> chunk{};
  while (std::feof(file.get()) == 0) {
    const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), file.get());
    if (std::ferror(file.get()) != 0) {
      throw_errno("fread", fmt::format("cannot read '{}'", path), errno);
    }
    if (bytes.size() + got > largest_file_bytes) {
      throw error{
          errc::invalid_argument,
          fmt::format(
              "'{}' is larger than any flight record ({} bytes)", path, largest_file_bytes)};
    }
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(got));
  }
  return bytes;
}

}  // namespace

flight_log parse_flight_record(std::span<const std::byte> bytes) {
  flight_log log;
  const auto header = parse_header(bytes, log);
  if (!header) {
    return log;
  }
  take_header(*header, log);
  check_length(*header, bytes.size(), log);
  const auto ring = bytes.subspan(std::min<std::size_t>(bytes.size(), detail::flight_header_bytes));
  const std::size_t slots = ring.size() / detail::flight_entry_bytes;
  // A damaged header cannot say how many laps the ring went; its size still can.
  const std::size_t capacity = log.is_identified && header->capacity > 0 ? header->capacity : slots;
  for (std::size_t slot = 0; slot < std::min(slots, capacity); ++slot) {
    flight_words_array words{};
    std::memcpy(words.data(), ring.data() + slot * detail::flight_entry_bytes, sizeof(words));
    take_entry(words, slot, capacity, log);
  }
  find_gaps(log);
  return log;
}

flight_log read_flight_record(const std::string& path) {
  flight_log log = parse_flight_record(read_whole(path));
  log.path = path;
  return log;
}

}  // namespace spark_comm
