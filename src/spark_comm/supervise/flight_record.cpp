// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/prefetch.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/detail/flight_layout.hpp>
#include <spark_comm/supervise/detail/mapped_file.hpp>
#include <spark_comm/supervise/flight_entry.hpp>
#include <spark_comm/supervise/flight_record.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace spark_comm {
namespace {

using detail::flight_header;
using detail::flight_word;
using detail::flight_words_array;

using shared_word = std::atomic_ref<std::uint64_t>;

std::int64_t steady_ns(time_point at) noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

flight_header& header_of(const detail::mapping& memory) noexcept {
  return *static_cast<flight_header*>(memory.get());
}

template <std::size_t Size>
void copy_text(std::array<char, Size>& target, std::string_view text) noexcept {
  // The array is zero already, so what is left of it ends the text.
  std::ranges::copy(text.substr(0, Size - 1), target.begin());
}

flight_header make_header(const flight_identity& who, std::size_t capacity) {
  flight_header header{};
  header.magic = detail::flight_magic;
  header.version = detail::flight_version;
  header.header_bytes = detail::flight_header_bytes;
  header.entry_bytes = detail::flight_entry_bytes;
  header.capacity = static_cast<std::uint32_t>(capacity);
  header.rank = who.rank;
  header.world_size = who.world_size;
  header.process = static_cast<std::uint64_t>(::getpid());
  header.communicator = who.communicator;
  header.generation = who.generation;
  header.steady_base_ns = steady_ns(std::chrono::steady_clock::now());
  header.wall_base_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
  copy_text(header.name, who.name);
  std::array<char, 64> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) {
    copy_text(header.host, host.data());
  }
  header.check = detail::header_check(header);
  return header;
}

std::size_t checked_capacity(std::size_t asked) {
  constexpr std::size_t largest = std::size_t{1} << 20U;
  if (asked == 0 || asked > largest) {
    throw error{errc::invalid_argument,
                fmt::format("a flight record holds 1 to {} operations, not {}", largest, asked)};
  }
  return std::bit_ceil(asked);
}

/// A consistent copy of an entry that another thread may be writing; none if it was.
std::optional<flight_words_array> snapshot(std::uint64_t* entry) noexcept {
  flight_words_array words{};
  // Acquire, each: the second look at `commit` must not come before any of them.
  for (std::size_t each = 0; each < words.size(); ++each) {
    words[each] = shared_word{entry[each]}.load(std::memory_order_acquire);
  }
  const std::uint64_t commit = at(words, flight_word::commit);
  const bool is_whole =
      commit != 0 && shared_word{entry[0]}.load(std::memory_order_relaxed) == commit;
  return is_whole ? std::optional{words} : std::nullopt;
}

/// Time since the submission, if the entry still is the one that is meant.
std::optional<std::uint64_t> since_submission(std::uint64_t* entry,
                                              std::uint64_t index,
                                              time_point at) noexcept {
  if (shared_word{entry[0]}.load(std::memory_order_acquire) != index + 1) {
    return std::nullopt;
  }
  const auto submitted = static_cast<std::int64_t>(
      shared_word{entry[static_cast<std::size_t>(flight_word::submitted_ns)]}.load(
          std::memory_order_relaxed));
  const std::int64_t since = std::max<std::int64_t>(steady_ns(at) - submitted, 0);
  return std::min(static_cast<std::uint64_t>(since), detail::below_tag);
}

/// Stores a word of the watchdog's. Should the entry be overwritten meanwhile, the tag tells.
void store_tagged(std::uint64_t* entry,
                  flight_word which,
                  std::uint64_t tag,
                  std::uint64_t value) noexcept {
  // Release: an outcome is seen after the time that belongs to it.
  shared_word{entry[static_cast<std::size_t>(which)]}.store(tag << detail::tag_shift | value,
                                                            std::memory_order_release);
}

}  // namespace

std::string_view name_of(flight_stage stage) noexcept {
  switch (stage) {
    case flight_stage::submitted: return "submitted";
    case flight_stage::started:   return "started";
    case flight_stage::completed: return "completed";
    case flight_stage::failed:    return "failed";
  }
  return "unknown";
}

std::string flight_record::file_name(const flight_identity& who) {
  std::string safe = who.name.substr(0, 100);
  for (char& each : safe) {
    const bool is_plain =
        std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '-' || each == '_';
    each = is_plain ? each : '_';
  }
  return fmt::format("spark_comm-{}-rank{}-gen{}.flight", safe, who.rank, who.generation);
}

flight_record flight_record::create(const flight_identity& who,
                                    const std::string& directory,
                                    std::size_t capacity) {
  const std::size_t entries = checked_capacity(capacity);
  const std::size_t length_bytes =
      detail::flight_header_bytes + entries * detail::flight_entry_bytes;
  const flight_header header = make_header(who, entries);
  if (directory.empty()) {
    detail::mapping memory = detail::map_anonymous(length_bytes);
    std::memcpy(memory.get(), &header, sizeof(header));
    return {std::move(memory), {}, entries};
  }
  std::string path = directory + "/" + file_name(who);
  detail::mapping memory =
      detail::map_new_file(path, std::as_bytes(std::span{&header, 1}), length_bytes);
  return {std::move(memory), std::move(path), entries};
}

flight_record::flight_record(detail::mapping memory,
                             std::string path,
                             std::size_t capacity) noexcept
    : memory_(std::move(memory)), path_(std::move(path)), capacity_(capacity) {}

std::uint64_t* flight_record::entry(std::uint64_t index) const noexcept {
  constexpr std::size_t header_words = detail::flight_header_bytes / sizeof(std::uint64_t);
  auto* const words = static_cast<std::uint64_t*>(memory_.get());
  return words + header_words + (index & (capacity_ - 1)) * detail::flight_words;
}

std::uint64_t flight_record::submitted(const operation_record& record,
                                       time_point now,
                                       std::uint64_t signature) noexcept {
  const shared_word written{header_of(memory_).written};
  const std::uint64_t index =
      written.load(std::memory_order_relaxed);  // only this thread writes it
  const flight_words_array words = detail::pack(record, index, steady_ns(now), signature);
  std::uint64_t* const target = entry(index);
  // Release, each: whoever sees a new word, a reader or the file after a kill, also sees that the
  // entry was not whole then; and whoever sees `commit` sees them all.
  shared_word{target[0]}.store(0, std::memory_order_relaxed);
  for (std::size_t each = 1; each < words.size(); ++each) {
    shared_word{target[each]}.store(words[each], std::memory_order_release);
  }
  shared_word{target[0]}.store(words[0], std::memory_order_release);
  written.store(index + 1, std::memory_order_release);
  prefetch_for_writing(reinterpret_cast<const flight_words_array*>(entry(index + 1)));
  return index;
}

void flight_record::started(std::uint64_t index, time_point at) noexcept {
  if (const auto since = since_submission(entry(index), index, at)) {
    store_tagged(entry(index), flight_word::started, detail::lap_tag(index, capacity_), *since);
  }
}

void flight_record::completed(std::uint64_t index, time_point at) noexcept {
  finished(index, at, detail::pack_outcome(std::nullopt, native_domain::none, 0));
}

void flight_record::failed(std::uint64_t index,
                           time_point at,
                           errc code,
                           native_domain domain,
                           std::int64_t native_number) noexcept {
  finished(index, at, detail::pack_outcome(code, domain, native_number));
}

void flight_record::finished(std::uint64_t index, time_point at, std::uint64_t outcome) noexcept {
  if (const auto since = since_submission(entry(index), index, at)) {
    const std::uint64_t tag = detail::lap_tag(index, capacity_);
    store_tagged(entry(index), flight_word::finished, tag, *since);
    store_tagged(entry(index), flight_word::outcome, tag, outcome);
  }
}

void flight_record::ended(flight_end how) noexcept {
  shared_word{header_of(memory_).ended}.store(static_cast<std::uint64_t>(how),
                                              std::memory_order_relaxed);
}

std::optional<flight_entry> flight_record::find(std::uint64_t index) const noexcept {
  const auto words = snapshot(entry(index));
  if (!words || at(*words, flight_word::commit) != index + 1) {
    return std::nullopt;
  }
  return detail::unpack(*words, capacity_);
}

std::vector<flight_entry> flight_record::recent(std::size_t count) const {
  const std::uint64_t end = shared_word{header_of(memory_).written}.load(std::memory_order_acquire);
  const auto wanted = std::min<std::uint64_t>({count, capacity_, end});
  std::vector<flight_entry> entries;
  entries.reserve(wanted);
  for (std::uint64_t index = end - wanted; index < end; ++index) {
    if (auto found = find(index)) {
      entries.push_back(*found);
    }
  }
  return entries;
}

}  // namespace spark_comm
