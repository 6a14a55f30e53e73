// SPDX-License-Identifier: AGPL-3.0-only
// Fuzz target of flight records and what is made of them: the merged trace and its JSON. The first
// byte says whether check words are put right afterwards, so that damage gets past them.
#include "fuzz/fuzz_target.hpp"

#include <spark_comm/supervise/detail/flight_layout.hpp>
#include <spark_comm/supervise/flight_reader.hpp>
#include <spark_comm/supervise/trace.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spark_comm {
namespace {

using detail::at;
using detail::flight_header;
using detail::flight_word;
using detail::flight_words_array;
using fuzz::require;

constexpr std::uint32_t slots = 8;

void append(std::string& out, const auto& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A record as a rank leaves it that was killed in its third operation.
std::string record_of(int rank) {
  flight_header header{};
  header.magic = detail::flight_magic;
  header.version = detail::flight_version;
  header.header_bytes = detail::flight_header_bytes;
  header.entry_bytes = detail::flight_entry_bytes;
  header.capacity = slots;
  header.rank = rank;
  header.world_size = 2;
  header.generation = 1;
  header.name = {'t', 'p'};
  header.host = {'h', 'o', 's', 't'};
  header.written = 3;
  header.check = detail::header_check(header);
  std::string out;
  append(out, header);
  out.resize(detail::flight_header_bytes);
  for (std::uint64_t index = 0; index < header.written; ++index) {
    operation_record done{.sequence = index + 1, .ordinal = index + 1, .count_elements = 64};
    done.kind = operation_kind::all_reduce;
    flight_words_array words = detail::pack(done, index, 1000, index);
    const std::uint64_t tag = detail::lap_tag(index, slots) << detail::tag_shift;
    at(words, flight_word::started) = tag | 10;
    at(words, flight_word::finished) = tag | 20;
    at(words, flight_word::outcome) = tag | detail::pack_outcome({}, native_domain::none, 0);
    append(out, words);
  }
  out.resize(detail::flight_header_bytes + slots * detail::flight_entry_bytes);
  return out;
}

void repair(std::span<std::byte> record) {
  if (record.size() >= sizeof(flight_header)) {
    flight_header header{};
    std::memcpy(&header, record.data(), sizeof header);
    header.check = detail::header_check(header);
    std::memcpy(record.data(), &header, sizeof header);
  }
  for (std::size_t begin = detail::flight_header_bytes;
       begin + detail::flight_entry_bytes <= record.size();
       begin += detail::flight_entry_bytes) {
    flight_words_array words{};
    std::memcpy(words.data(), record.data() + begin, sizeof words);
    at(words, flight_word::check) = detail::entry_check(words);
    std::memcpy(record.data() + begin, words.data(), sizeof words);
  }
}

void check_log(const flight_log& log) {
  require(log.is_identified || !log.problems.empty());
  for (std::size_t i = 1; i < log.entries.size(); ++i) {
    require(log.entries[i - 1].index <= log.entries[i].index);
  }
}

void check_trace(const flight_trace& trace) {
  require(trace.ranks.size() == trace.logs.size());
  require(nlohmann::json::accept(to_chrome_trace(trace)));
}

}  // namespace
}  // namespace spark_comm

std::vector<std::string> fuzz_seeds() {
  return {"r" + spark_comm::record_of(1), "d" + spark_comm::record_of(1)};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spark_comm;
  if (size == 0) {
    return 0;
  }
  const auto given = std::as_bytes(std::span{data, size}.subspan(1));
  std::vector<std::byte> record{given.begin(), given.end()};
  if (*data == 'r') {
    repair(record);
  }
  static const std::string other = record_of(0);
  std::vector<flight_log> logs;
  logs.push_back(parse_flight_record(record));
  check_log(logs.front());
  logs.push_back(parse_flight_record(std::as_bytes(std::span{other})));
  std::ranges::for_each(merge_flight_records(std::move(logs)), check_trace);
  return 0;
}
